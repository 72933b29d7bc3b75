{{/*
Probes of a process that speaks gRPC: (list context port nameInCertificate).

Start-up and readiness go by health: a process is healthy when it is registered and follows membership. Liveness asks
the same question, and is shallow nevertheless: it is asked only after the start-up, and from then on a process stays
healthy, whatever groups and quorums come to, until it stops. Only an event loop that is stuck does not answer.

The kubelet has no certificate, so with TLS a script asks for it. It takes half a second of a core, so it asks seldom,
and liveness only looks whether somebody listens.
*/}}
{{- define "ordercast.probes" -}}
{{- $context := index . 0 -}}
{{- $port := index . 1 -}}
{{- if $context.Values.tls.enabled }}
{{- $ask := list "python" "/etc/ordercast/scripts/healthy.py" (printf "localhost:%d" (int $port)) (index . 2) }}
startupProbe:
  exec:
    command: {{ $ask | toJson }}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: {{ divf $context.Values.startupSeconds 5 | ceil | int }}
readinessProbe:
  exec:
    command: {{ $ask | toJson }}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 2
livenessProbe:
  tcpSocket:
    port: {{ $port }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- else }}
startupProbe:
  grpc:
    port: {{ $port }}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: {{ divf $context.Values.startupSeconds 2 | ceil | int }}
readinessProbe:
  grpc:
    port: {{ $port }}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
livenessProbe:
  grpc:
    port: {{ $port }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
{{- end -}}

{{- define "ordercast.scriptsVolume" -}}
- name: scripts
  configMap:
    name: {{ include "ordercast.fullname" . }}-scripts
{{- end -}}

{{- define "ordercast.scriptsMount" -}}
- name: scripts
  mountPath: /etc/ordercast/scripts
  readOnly: true
{{- end -}}
