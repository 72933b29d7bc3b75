{{/* (list context host master): what the Spark job is told. */}}
{{- define "ordercast.analyticsArguments" -}}
{{- $context := index . 0 -}}
- analytics
- run
- --address={{ index . 1 }}:4317
- --output=/var/lib/ordercast/tables
- --metrics-listen={{ include "ordercast.everywhere" $context }}:9464
- --keep-days={{ $context.Values.analytics.keepDays }}
{{- with index . 2 }}
- --master={{ . }}
{{- end }}
{{- if $context.Values.tls.enabled }}
{{- $folder := include "ordercast.tlsFolder" $context }}
- --ca={{ $folder }}/ca.crt
- --cert={{ $folder }}/tls.crt
- --cert-key={{ $folder }}/tls.key
- --server-name={{ include "ordercast.telemetryService" $context }}
{{- end }}
{{- end -}}

{{/* What driver and executors have in common, as Spark's operator calls it. */}}
{{- define "ordercast.sparkPod" -}}
labels:
  {{- include "ordercast.podLabels" (list . "analytics") | nindent 2 }}
{{- with include "ordercast.scheduling" (list . .Values.analytics) | trim }}
{{ . }}
{{- end }}
podSecurityContext:
  {{- include "ordercast.podSecurity" . | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
{{- with concat .Values.pods.extraEnv .Values.analytics.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: data
    mountPath: /var/lib/ordercast
  {{- if .Values.tls.enabled }}
  {{- include "ordercast.tlsMount" . | nindent 2 }}
  {{- end }}
{{- end -}}
