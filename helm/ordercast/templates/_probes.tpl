{{/*
Probes of a process, over HTTP at the port of its metrics: the kubelet has no certificate.

Start-up and readiness go by health: a process is healthy when it is registered and follows membership. From then on it
stays healthy, whatever groups and quorums come to, until it stops. Liveness is shallow: only an event loop that is
stuck for a minute is a reason to start anew.
*/}}
{{- define "ordercast.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ divf .Values.startupSeconds 2 | ceil | int }}
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}
