{{/* The pod of a process of the cluster, whichever services it runs: (list context component node). */}}

{{/* By which host others reach it. Pods of a Deployment have no names in DNS. */}}
{{- define "ordercast.nodeHost" -}}
{{- $context := index . 0 -}}
{{- $node := index . 2 -}}
{{- if eq $node.kind "StatefulSet" -}}
{{- printf "$(POD_NAME).%s" (include "ordercast.host" (list $context $node.headless)) -}}
{{- else if eq $context.Values.ipFamily "IPv6" -}}
[$(POD_IP)]
{{- else -}}
$(POD_IP)
{{- end -}}
{{- end -}}

{{- define "ordercast.nodeArguments" -}}
{{- $context := index . 0 -}}
{{- $node := index . 2 -}}
{{- $host := include "ordercast.nodeHost" . -}}
{{- $everywhere := include "ordercast.everywhere" $context -}}
- serve
{{- range $node.services }}
- {{ . }}
{{- end }}
- --name=$(POD_NAME)
- --data=/var/lib/ordercast/data
- --peer-listen={{ $everywhere }}:7410
- --peer-advertise={{ $host }}:7410
- --frames-port=7411
{{- if has "gateway" $node.services }}
- --client-listen={{ $everywhere }}:7400
- --client-advertise={{ $host }}:7400
{{- end }}
- --membership={{ include "ordercast.members" $context }}
{{- if $context.Values.discovery.enabled }}
- --kubernetes.selector=app.kubernetes.io/name={{ $context.Chart.Name }},app.kubernetes.io/instance={{ $context.Release.Name }}
{{- end }}
- --telemetry.metrics-listen={{ $everywhere }}:9464
{{- with include "ordercast.telemetryEndpoint" $context }}
- --telemetry.endpoint={{ . }}
{{- end }}
{{- if not $context.Values.tls.enabled }}
- --insecure
{{- else }}
{{- $folder := include "ordercast.tlsFolder" $context }}
{{- if $context.Values.telemetry.enabled }}
- --telemetry.service-name={{ include "ordercast.telemetryService" $context }}
{{- else if $context.Values.telemetry.externalEndpoint }}
- --telemetry.service-name={{ $context.Values.telemetry.externalServerName }}
{{- end }}
- --tls.peer-cert={{ $folder }}/tls.crt
- --tls.peer-key={{ $folder }}/tls.key
- --tls.peer-ca={{ $folder }}/ca.crt
- --tls.peer-uri={{ $context.Values.tls.peerUri }}
{{- if has "gateway" $node.services }}
- --tls.client-cert={{ $folder }}/tls.crt
- --tls.client-key={{ $folder }}/tls.key
{{- if $context.Values.tls.requireClientCertificates }}
- --tls.client-ca={{ $folder }}/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Pods of a Deployment have no volume that lasts, and need hardly anything. */}}
{{- define "ordercast.diskSize" -}}
{{- $node := index . 2 -}}
{{- ternary "512Mi" (index (index . 0).Values $node.section "persistence" "size") (eq $node.kind "Deployment") -}}
{{- end -}}

{{- define "ordercast.nodeVariables" -}}
{{- $context := index . 0 -}}
{{- $node := index . 2 -}}
{{ include "ordercast.podVariables" $context }}
{{- if eq $node.kind "Deployment" }}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
# Kubernetes 1.35 copies it from the machine to the pod; before, it is empty, and replicas are not spread by zone.
- name: ORDERCAST_ZONE
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
{{- if not (dig "storage" "map_bytes" "" $context.Values.settings) }}
# The store may grow as large as its disk.
- name: ORDERCAST_STORAGE__MAP_BYTES
  value: {{ include "ordercast.bytes" (include "ordercast.diskSize" .) | quote }}
{{- end }}
{{- include "ordercast.settingVariables" (list "ORDERCAST_" $context.Values.settings) }}
{{- include "ordercast.extraVariables" (list $context (index $context.Values $node.section)) }}
{{- end -}}

{{- define "ordercast.nodePod" -}}
{{- $context := index . 0 -}}
{{- $component := index . 1 -}}
{{- $node := index . 2 -}}
{{- $values := index $context.Values $node.section -}}
{{- $isGateway := has "gateway" $node.services -}}
{{- $preStop := ternary $context.Values.preStopSeconds 0 $isGateway -}}
metadata:
  labels:
    {{- include "ordercast.podLabels" (list $context $component) | nindent 4 }}
  {{- with include "ordercast.podAnnotations" (list $context true) | trim }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "ordercast.podIdentity" (list $context $component) | nindent 2 }}
  {{- with include "ordercast.scheduling" (list $context $values) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "ordercast.apart" (list $context $component) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  # SIGTERM is the drain: the process says that it leaves, sends clients elsewhere and finishes what it took, for
  # drain_s at most. Replicas stay where they are: it comes back. The rest is for closing, and to be safe.
  terminationGracePeriodSeconds: {{ add (ceil (default 10 $context.Values.settings.drain_s)) $preStop 20 }}
  securityContext:
    {{- include "ordercast.podSecurity" $context | nindent 4 }}
  containers:
    - name: ordercast
      image: {{ include "ordercast.image" (list $context $context.Values.image) }}
      imagePullPolicy: {{ $context.Values.image.pullPolicy }}
      args:
        {{- include "ordercast.nodeArguments" . | nindent 8 }}
      env:
        {{- include "ordercast.nodeVariables" . | nindent 8 }}
      ports:
        - {name: peers, containerPort: 7410}
        - {name: frames, containerPort: 7411}
        - {name: metrics, containerPort: 9464}
        {{- if $isGateway }}
        - {name: clients, containerPort: 7400}
        {{- end }}
      {{- include "ordercast.probes" $context | nindent 6 }}
      {{- if and $isGateway $preStop }}
      # Until nobody sends it new clients any more.
      lifecycle:
        preStop:
          sleep:
            seconds: {{ $preStop }}
      {{- end }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        {{- include "ordercast.containerSecurity" $context | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/ordercast
        {{- if $context.Values.tls.enabled }}
        {{- include "ordercast.tlsMount" $context | nindent 8 }}
        {{- end }}
        {{- with $context.Values.pods.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- $isOwn := eq $node.kind "Deployment" }}
  {{- if or $isOwn $context.Values.tls.enabled $context.Values.pods.extraVolumes }}
  volumes:
    {{- if $isOwn }}
    # A pod of a Deployment never comes back, so neither does its identity.
    - name: data
      emptyDir:
        sizeLimit: {{ include "ordercast.diskSize" . }}
    {{- end }}
    {{- if $context.Values.tls.enabled }}
    {{- include "ordercast.tlsVolume" (list $context $component) | nindent 4 }}
    {{- end }}
    {{- with $context.Values.pods.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}
