{{/*
Who opens connections to whom, and at which ports: the one table that all NetworkPolicies are made from.

Of two processes that talk in frames the one with the lower name dials, so both directions are here. `clients`,
`prometheus` and `apiServer` are outside: values say who they are. `jobs` are the chart's own Jobs, and its test.
*/}}
{{- define "ordercast.conversations" -}}
{{- $nodes := include "ordercast.nodes" . | fromYaml | keys | sortAlpha -}}
{{- if eq .Values.profile "compact" }}
- {from: node, to: node, ports: [peers, frames]}
- {from: clients, to: node, ports: [clients]}
- {from: jobs, to: node, ports: [clients]}
{{- else }}
- {from: membership, to: membership, ports: [peers, frames]}
- {from: consensus, to: membership, ports: [peers]}
- {from: sequencer, to: membership, ports: [peers]}
- {from: gateway, to: membership, ports: [peers]}
- {from: sequencer, to: sequencer, ports: [peers, frames]}
- {from: sequencer, to: consensus, ports: [peers, frames]}
- {from: consensus, to: sequencer, ports: [peers, frames]}
- {from: consensus, to: consensus, ports: [peers, frames]}
- {from: sequencer, to: gateway, ports: [peers, frames]}
- {from: gateway, to: sequencer, ports: [peers, frames]}
- {from: clients, to: gateway, ports: [clients]}
- {from: jobs, to: gateway, ports: [clients]}
{{- end }}
{{- range $nodes }}
- {from: prometheus, to: {{ . }}, ports: [metrics]}
{{- end }}
{{- if .Values.discovery.enabled }}
{{- range $nodes }}
- {from: {{ . }}, to: apiServer, ports: {{ $.Values.networkPolicy.apiServer.ports | toJson }}}
{{- end }}
{{- end }}
{{- if .Values.telemetry.enabled }}
{{- range $nodes }}
- {from: {{ . }}, to: telemetry, ports: [otlp]}
{{- end }}
- {from: prometheus, to: telemetry, ports: [metrics]}
{{- end }}
{{- if .Values.analytics.enabled }}
- {from: analytics, to: telemetry, ports: [otlp]}
- {from: prometheus, to: analytics, ports: [metrics]}
{{- if eq .Values.analytics.kind "SparkApplication" }}
# Driver and executors choose their ports.
- {from: analytics, to: analytics, ports: []}
{{- end }}
{{- end }}
{{- end -}}

{{/* Everything that runs in pods. */}}
{{- define "ordercast.podComponents" -}}
{{- $components := include "ordercast.nodes" . | fromYaml | keys | sortAlpha -}}
{{- $components = append $components "jobs" -}}
{{- if .Values.telemetry.enabled }}{{ $components = append $components "telemetry" }}{{ end -}}
{{- if .Values.analytics.enabled }}{{ $components = append $components "analytics" }}{{ end -}}
{{- $components | toJson -}}
{{- end -}}

{{/* (list context who): as Kubernetes names whom a rule is about. */}}
{{- define "ordercast.networkPeer" -}}
{{- $context := index . 0 -}}
{{- $who := index . 1 -}}
{{- if eq $who "clients" -}}
{{- toYaml $context.Values.networkPolicy.clients -}}
{{- else if eq $who "prometheus" -}}
{{- toYaml $context.Values.networkPolicy.prometheus -}}
{{- else if eq $who "apiServer" -}}
{{- with $context.Values.networkPolicy.apiServer.to }}{{ toYaml . }}{{ end -}}
{{- else -}}
- podSelector:
    matchLabels:
      {{- include "ordercast.selector" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{- define "ordercast.networkPorts" -}}
{{- with . }}
ports:
  {{- range . }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}
{{- end -}}
