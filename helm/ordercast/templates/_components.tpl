{{/* What the cluster is made of. Every template that is about all of it goes through these. */}}

{{/*
The components that run processes of the cluster, by name:
  section   where their values are
  services  what a process runs
  kind      of the workload
  replicas  how many; with autoscaling, how many there may be
  headless  the Service that gives pods their names
*/}}
{{- define "ordercast.nodes" -}}
{{- $name := include "ordercast.fullname" . -}}
{{- if eq .Values.profile "compact" }}
node:
  section: compact
  services: [membership, consensus, sequencer, gateway]
  kind: StatefulSet
  replicas: {{ .Values.compact.replicas | default 3 }}
  headless: {{ $name }}-node
{{- else }}
membership:
  section: membership
  services: [membership]
  kind: StatefulSet
  replicas: {{ .Values.membership.replicas | default 3 }}
  headless: {{ $name }}-membership
consensus:
  section: consensus
  services: [consensus]
  kind: StatefulSet
  replicas: {{ .Values.consensus.replicas | default 3 }}
  headless: {{ $name }}-consensus
sequencer:
  section: sequencer
  services: [sequencer]
  kind: StatefulSet
  replicas: {{ .Values.sequencer.replicas | default 3 }}
  headless: {{ $name }}-sequencer
gateway:
  section: gateway
  services: [gateway]
  kind: {{ .Values.gateway.kind }}
  {{- if .Values.gateway.autoscaling.enabled }}
  replicas: {{ .Values.gateway.autoscaling.maxReplicas }}
  {{- else }}
  replicas: {{ .Values.gateway.replicas | default 2 }}
  {{- end }}
  # The name without more is that of the Service that clients dial.
  headless: {{ $name }}-gateway-pods
{{- end }}
{{- end -}}

{{/* Where membership runs. */}}
{{- define "ordercast.membershipComponent" -}}
{{- ternary "node" "membership" (eq .Values.profile "compact") -}}
{{- end -}}

{{/* Where gateways run. */}}
{{- define "ordercast.gatewayComponent" -}}
{{- ternary "node" "gateway" (eq .Values.profile "compact") -}}
{{- end -}}

{{/* The jobs of Prometheus, as dashboards and alerts know them, each with its components. */}}
{{- define "ordercast.scrapeJobs" -}}
ordercast: {{ include "ordercast.nodes" . | fromYaml | keys | sortAlpha | toJson }}
{{- if .Values.telemetry.enabled }}
ordercast-telemetry: [telemetry]
{{- end }}
{{- if .Values.analytics.enabled }}
ordercast-analytics: [analytics]
{{- end }}
{{- end -}}

{{/* name=host:port,... of the membership nodes: fixed, so they are known before there is a pod. */}}
{{- define "ordercast.members" -}}
{{- $component := include "ordercast.membershipComponent" . -}}
{{- $node := index (include "ordercast.nodes" . | fromYaml) $component -}}
{{- $workload := printf "%s-%s" (include "ordercast.fullname" .) $component -}}
{{- $members := list -}}
{{- range $number := until (int $node.replicas) -}}
{{- $pod := printf "%s-%d" $workload $number -}}
{{- $members = append $members (printf "%s=%s.%s:7410" $pod $pod (include "ordercast.host" (list $ $node.headless))) -}}
{{- end -}}
{{- join "," $members -}}
{{- end -}}
