{{/* What all pods have in common. */}}

{{/* (list context component): labels of a pod. No versions: a new chart alone is no reason to replace pods. */}}
{{- define "ordercast.podLabels" -}}
{{- $context := index . 0 -}}
{{ include "ordercast.selector" . }}
{{- with $context.Values.pods.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list context isScraped): annotations of a pod. */}}
{{- define "ordercast.podAnnotations" -}}
{{- $context := index . 0 -}}
{{- if and (index . 1) $context.Values.monitoring.annotations }}
prometheus.io/scrape: "true"
prometheus.io/port: "9464"
prometheus.io/path: /metrics
{{- end }}
{{- with $context.Values.pods.annotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Nobody is root, and nothing but volumes can be written. */}}
{{- define "ordercast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
# A volume with much on it is not walked through at every start.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "ordercast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* (list context values): where a pod runs. Jobs have no values of their own: an empty dict. */}}
{{- define "ordercast.scheduling" -}}
{{- $context := index . 0 -}}
{{- $values := index . 1 -}}
{{- $pods := $context.Values.pods -}}
{{- with merge (dict) ($values.nodeSelector | default dict) $pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat $pods.tolerations ($values.tolerations | default list) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName | default $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* (list context component): pods of one component keep away from each other. */}}
{{- define "ordercast.apart" -}}
{{- $context := index . 0 -}}
{{- $pods := $context.Values.pods -}}
{{- $selector := include "ordercast.selector" . -}}
{{- if eq $pods.antiAffinity "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- $selector | nindent 12 }}
{{- else if eq $pods.antiAffinity "soft" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- $selector | nindent 14 }}
{{- end }}
{{- with $pods.spreadOver }}
topologySpreadConstraints:
  {{- range . }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $pods.spreadWhenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* (list context account): who the pod is towards Kubernetes, and images. */}}
{{- define "ordercast.podIdentity" -}}
{{- $context := index . 0 -}}
serviceAccountName: {{ include "ordercast.fullname" $context }}-{{ index . 1 }}
{{- $isNode := hasKey (include "ordercast.nodes" $context | fromYaml) (index . 1) }}
automountServiceAccountToken: {{ or $context.Values.serviceAccount.automountToken (and $isNode $context.Values.discovery.enabled) }}
# Variables that tell of Services beside it would begin as settings do.
enableServiceLinks: false
{{- with $context.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Names that arguments refer to. */}}
{{- define "ordercast.podVariables" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end -}}

{{/* (list context values): variables that whoever installs it adds. */}}
{{- define "ordercast.extraVariables" -}}
{{- with concat (index . 0).Values.pods.extraEnv ((index . 1).extraEnv | default list) }}
{{ toYaml . }}
{{- end }}
{{- end -}}
