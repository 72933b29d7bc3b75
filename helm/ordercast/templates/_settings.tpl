{{/* Settings of processes as variables. A change to one is a change to the pods, so they are replaced. */}}

{{/* As the settings' own parser reads it. Helm reads numbers as floats, and would write large ones with an exponent. */}}
{{- define "ordercast.settingText" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* A quantity as Kubernetes has it, such as 20Gi, in bytes. */}}
{{- define "ordercast.bytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "P" 1000000000000000 -}}
{{- $units = merge $units (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624) -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit | default 1) | int64 -}}
{{- end -}}

{{/* (list prefix settings): `storage: {map_bytes: 1}` is ORDERCAST_STORAGE__MAP_BYTES. */}}
{{- define "ordercast.settingVariables" -}}
{{- $prefix := index . 0 -}}
{{- range $name, $value := index . 1 }}
{{- if kindIs "map" $value }}
{{- range $inner, $innerValue := $value }}
- name: {{ printf "%s%s__%s" $prefix (upper $name) (upper $inner) }}
  value: {{ include "ordercast.settingText" $innerValue | quote }}
{{- end }}
{{- else }}
- name: {{ printf "%s%s" $prefix (upper $name) }}
  value: {{ include "ordercast.settingText" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Where telemetry of the cluster's processes goes; nothing, if nowhere. */}}
{{- define "ordercast.telemetryEndpoint" -}}
{{- if .Values.telemetry.enabled -}}
{{- printf "%s:4317" (include "ordercast.host" (list . (include "ordercast.telemetryService" .))) -}}
{{- else -}}
{{- .Values.telemetry.externalEndpoint -}}
{{- end -}}
{{- end -}}
