{{/*
The pod of something that ends: (list context script arguments configMap).
The ConfigMap, if one is named, is mounted at /etc/ordercast/declared.
*/}}
{{- define "ordercast.jobPod" -}}
{{- $context := index . 0 -}}
metadata:
  labels:
    {{- include "ordercast.podLabels" (list $context "jobs") | nindent 4 }}
  {{- with include "ordercast.podAnnotations" (list $context false) | trim }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "ordercast.jobPodSpec" . | nindent 2 }}
{{- end -}}

{{/* Apart, for the test is a Pod with metadata of its own. */}}
{{- define "ordercast.jobPodSpec" -}}
{{- $context := index . 0 -}}
{{- $script := index . 1 -}}
{{- $configMap := index . 3 -}}
restartPolicy: Never
{{ include "ordercast.podIdentity" (list $context "jobs") }}
{{- with include "ordercast.scheduling" (list $context dict) | trim }}
{{ . }}
{{- end }}
securityContext:
  {{- include "ordercast.podSecurity" $context | nindent 2 }}
containers:
  - name: {{ $script | replace "_" "-" }}
    image: {{ include "ordercast.image" (list $context $context.Values.image) }}
    imagePullPolicy: {{ $context.Values.image.pullPolicy }}
    command: [python, /etc/ordercast/scripts/{{ $script }}.py]
    args:
      {{- include "ordercast.connectionArguments" $context | nindent 6 }}
      {{- range index . 2 }}
      - {{ . | quote }}
      {{- end }}
    env:
      {{- include "ordercast.podVariables" $context | nindent 6 }}
      {{- with include "ordercast.extraVariables" (list $context dict) | trim }}
      {{- . | nindent 6 }}
      {{- end }}
    resources:
      requests: {cpu: 50m, memory: 96Mi}
      limits: {memory: 512Mi}
    securityContext:
      {{- include "ordercast.containerSecurity" $context | nindent 6 }}
    volumeMounts:
      {{- include "ordercast.scriptsMount" $context | nindent 6 }}
      {{- if $configMap }}
      - name: declared
        mountPath: /etc/ordercast/declared
        readOnly: true
      {{- end }}
      {{- if $context.Values.tls.enabled }}
      {{- include "ordercast.tlsMount" $context | nindent 6 }}
      {{- end }}
      {{- with $context.Values.pods.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  {{- include "ordercast.scriptsVolume" $context | nindent 2 }}
  {{- if $configMap }}
  - name: declared
    configMap:
      name: {{ $configMap }}
  {{- end }}
  {{- if $context.Values.tls.enabled }}
  {{- include "ordercast.tlsVolume" (list $context "jobs") | nindent 2 }}
  {{- end }}
  {{- with $context.Values.pods.extraVolumes }}
  {{- toYaml . | nindent 2 }}
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
