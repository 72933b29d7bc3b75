{{/* Names, labels and images. */}}

{{- define "ordercast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name -}}
{{- end -}}
{{- end -}}

{{/* (list context component): what pods are chosen by. It must never change: Kubernetes does not let it. */}}
{{- define "ordercast.selector" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: {{ $context.Chart.Name }}
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list context component): of every object. */}}
{{- define "ordercast.labels" -}}
{{- $context := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version }}
{{ include "ordercast.selector" . }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
{{- end -}}

{{/* (list context image). */}}
{{- define "ordercast.image" -}}
{{- $context := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default $context.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* (list context service): the host of a Service, in whichever namespace the pod is. */}}
{{- define "ordercast.host" -}}
{{- printf "%s.$(POD_NAMESPACE).svc.%s" (index . 1) (index . 0).Values.clusterDomain -}}
{{- end -}}

{{- define "ordercast.clientService" -}}
{{- printf "%s-gateway" (include "ordercast.fullname" .) -}}
{{- end -}}

{{- define "ordercast.telemetryService" -}}
{{- printf "%s-telemetry" (include "ordercast.fullname" .) -}}
{{- end -}}

{{/* What processes listen at. */}}
{{- define "ordercast.everywhere" -}}
{{- ternary "[::]" "0.0.0.0" (eq .Values.ipFamily "IPv6") -}}
{{- end -}}
