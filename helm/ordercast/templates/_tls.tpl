{{/* Certificates: where they come from, and where processes find them. */}}

{{- define "ordercast.tlsFolder" -}}/etc/ordercast/tls{{- end -}}

{{/* (list context component): the Secret with the certificate of a component. */}}
{{- define "ordercast.tlsSecret" -}}
{{- $context := index . 0 -}}
{{- if eq $context.Values.tls.source "secret" -}}
{{- $context.Values.tls.secretName -}}
{{- else -}}
{{- printf "%s-%s-tls" (include "ordercast.fullname" $context) (index . 1) -}}
{{- end -}}
{{- end -}}

{{/* The mark of who may read what the telemetry service keeps, and is no process. */}}
{{- define "ordercast.readerUri" -}}ordercast:reader{{- end -}}

{{- define "ordercast.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ include "ordercast.tlsSecret" . }}
    defaultMode: 0440
{{- end -}}

{{- define "ordercast.tlsMount" -}}
- name: tls
  mountPath: {{ include "ordercast.tlsFolder" . }}
  readOnly: true
{{- end -}}

{{/* How Jobs and tests reach gateways, as arguments of their scripts. */}}
{{- define "ordercast.connectionArguments" -}}
- --gateway={{ include "ordercast.host" (list . (include "ordercast.clientService" .)) }}:{{ .Values.clientService.port }}
{{- if .Values.tls.enabled }}
{{- $folder := include "ordercast.tlsFolder" . }}
- --ca={{ $folder }}/ca.crt
{{- if .Values.tls.requireClientCertificates }}
- --cert={{ $folder }}/tls.crt
- --cert-key={{ $folder }}/tls.key
{{- end }}
{{- end }}
{{- end -}}
