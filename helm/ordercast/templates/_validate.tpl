{{/*
Values that are well formed and make no sense. Each sentence says what is wrong, and what to do. What is not well formed
(a typo, a text for a number) is refused by values.schema.json before.
*/}}

{{- define "ordercast.validate" -}}
{{- include "ordercast.validateNames" . -}}
{{- if eq .Values.profile "compact" -}}
{{- include "ordercast.validateCompact" . -}}
{{- else -}}
{{- include "ordercast.validateSeparate" . -}}
{{- end -}}
{{- include "ordercast.validateMembersStay" . -}}
{{- include "ordercast.validateTls" . -}}
{{- include "ordercast.validateTelemetry" . -}}
{{- include "ordercast.validateAnalytics" . -}}
{{- include "ordercast.validateClientService" . -}}
{{- include "ordercast.validateDomains" . -}}
{{- end -}}

{{- define "ordercast.validateNames" -}}
{{- $name := include "ordercast.fullname" . -}}
{{- if gt (len $name) 36 -}}
{{- fail (printf "the name %q has %d characters, and pods could not be named after it: use a shorter release name, or set fullnameOverride to at most 36 characters" $name (len $name)) -}}
{{- end -}}
{{- end -}}

{{/* (list value replicas): of processes that vote. */}}
{{- define "ordercast.validateVoters" -}}
{{- $replicas := int (index . 1) -}}
{{- if eq (mod $replicas 2) 0 -}}
{{- fail (printf "%s is %d: an even number survives no more failures than one less. Set it to 3 or 5" (index . 0) $replicas) -}}
{{- end -}}
{{- if lt $replicas 3 -}}
{{- fail (printf "%s is %d: without a third one, none may fail. Set it to 3 or 5" (index . 0) $replicas) -}}
{{- end -}}
{{- if gt $replicas 15 -}}
{{- fail (printf "%s is %d, and there are 15 membership nodes at most. Set it to 3 or 5" (index . 0) $replicas) -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateCompact" -}}
{{- range $service := list "membership" "consensus" "sequencer" "gateway" -}}
{{- if not (kindIs "invalid" (index $.Values $service).replicas) -}}
{{- fail (printf "%s.replicas is set, and with profile=compact every pod runs all services: set compact.replicas instead, or profile=separate" $service) -}}
{{- end -}}
{{- end -}}
{{- if .Values.gateway.autoscaling.enabled -}}
{{- fail "gateway.autoscaling.enabled needs gateways in pods of their own: set profile=separate, or do without" -}}
{{- end -}}
{{- include "ordercast.validateVoters" (list "compact.replicas" (default 3 .Values.compact.replicas)) -}}
{{- end -}}

{{- define "ordercast.validateSeparate" -}}
{{- if not (kindIs "invalid" .Values.compact.replicas) -}}
{{- fail "compact.replicas is set, and profile is separate: set profile=compact, or the replicas of membership, consensus, sequencer and gateway" -}}
{{- end -}}
{{- include "ordercast.validateVoters" (list "membership.replicas" (default 3 .Values.membership.replicas)) -}}
{{- range $service := list "consensus" "sequencer" -}}
{{- $replicas := int (default 3 (index $.Values $service).replicas) -}}
{{- if lt $replicas 3 -}}
{{- fail (printf "%s.replicas is %d, and a group needs 3 to survive the loss of one. Set it to 3 or more" $service $replicas) -}}
{{- end -}}
{{- end -}}
{{- $scaling := .Values.gateway.autoscaling -}}
{{- if $scaling.enabled -}}
{{- if not (kindIs "invalid" .Values.gateway.replicas) -}}
{{- fail "gateway.replicas is set, and gateway.autoscaling.enabled too: leave one of them out" -}}
{{- end -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "gateway.autoscaling.minReplicas (%d) is above maxReplicas (%d): set it to at most that" (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Only where there is a cluster to ask: `helm template` knows of none. How many there are is what they were told: pods may
be scaled to none, for a back-up.
*/}}
{{- define "ordercast.validateMembersStay" -}}
{{- $component := include "ordercast.membershipComponent" . -}}
{{- $replicas := int (index (include "ordercast.nodes" . | fromYaml) $component).replicas -}}
{{- $name := printf "%s-%s" (include "ordercast.fullname" .) $component -}}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $isOurs := and (eq (get $labels "app.kubernetes.io/name") $.Chart.Name) (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) -}}
{{- if and $isOurs (has (get $labels "app.kubernetes.io/component") (list "membership" "node")) -}}
{{- if ne .metadata.name $name -}}
{{- fail (printf "the membership nodes of this release are the StatefulSet %s, and they are fixed for good: with these values %s would begin anew, without data. Leave profile and fullnameOverride as they were, or install a second release" .metadata.name $name) -}}
{{- end -}}
{{- range .spec.template.spec.containers -}}
{{- range .args -}}
{{- $there := splitList "," . | len -}}
{{- if and (hasPrefix "--membership=" .) (ne $there $replicas) -}}
{{- fail (printf "there are %d membership nodes, and they are fixed for good: set %s.replicas back to %d" $there (ternary "compact" "membership" (eq $component "node")) $there) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateTls" -}}
{{- if .Values.tls.enabled -}}
{{- if and (eq .Values.tls.source "secret") (not .Values.tls.secretName) -}}
{{- fail "tls.enabled needs certificates: set tls.secretName to a Secret with tls.crt, tls.key and ca.crt, or tls.source=certManager" -}}
{{- end -}}
{{- if eq .Values.tls.source "secret" -}}
{{- include "ordercast.validateSecret" . -}}
{{- end -}}
{{- if and (eq .Values.tls.source "certManager") (not .Values.tls.certManager.issuerRef.name) -}}
{{- fail "tls.source=certManager needs who signs: set tls.certManager.issuerRef.name to an Issuer or ClusterIssuer" -}}
{{- end -}}
{{- if and (eq .Values.profile "separate") (eq .Values.gateway.kind "Deployment") -}}
{{- fail "with TLS a certificate names each process, and pods of a Deployment have names that nobody knows before: set gateway.kind=StatefulSet, or profile=compact" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tls.extraDnsNames (not (and .Values.tls.enabled (eq .Values.tls.source "certManager"))) -}}
{{- fail "tls.extraDnsNames is for certificates that cert-manager makes: set tls.enabled and tls.source=certManager, or put the names into the certificate of tls.secretName" -}}
{{- end -}}
{{- end -}}

{{/* Every namespace has the account: without it, there is no cluster to ask, or no namespace yet. */}}
{{- define "ordercast.validateSecret" -}}
{{- if lookup "v1" "ServiceAccount" .Release.Namespace "default" -}}
{{- $name := .Values.tls.secretName -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- if not $secret -}}
{{- fail (printf "tls.secretName is %s, and the namespace %s has no such Secret: create it first, with tls.crt, tls.key and ca.crt" $name .Release.Namespace) -}}
{{- end -}}
{{- range $file := list "tls.crt" "tls.key" "ca.crt" -}}
{{- if not (hasKey ($secret.data | default dict) $file) -}}
{{- fail (printf "the Secret %s has no %s: processes show tls.crt with tls.key, and trust what ca.crt signed. Put all three into it" $name $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateTelemetry" -}}
{{- $telemetry := .Values.telemetry -}}
{{- if $telemetry.enabled -}}
{{- if $telemetry.externalEndpoint -}}
{{- fail "telemetry.externalEndpoint is set, and the telemetry service is too: set telemetry.enabled=false to send elsewhere" -}}
{{- end -}}
{{- if and (eq $telemetry.sink "kafka") (not $telemetry.kafka.bootstrap) -}}
{{- fail "telemetry.sink=kafka needs brokers: set telemetry.kafka.bootstrap to host:port,..." -}}
{{- end -}}
{{- if and (eq $telemetry.sink "spool") (or $telemetry.kafka.bootstrap $telemetry.kafka.options) -}}
{{- fail "telemetry.kafka is set, and records go to the spool: set telemetry.sink=kafka" -}}
{{- end -}}
{{- if eq $telemetry.sink "spool" -}}
{{- include "ordercast.validateSpool" . -}}
{{- end -}}
{{- if and (eq $telemetry.sink "spool") (gt (int (default 1 $telemetry.replicas)) 1) -}}
{{- fail (printf "telemetry.replicas is %d, and a spool is one process's: set it to 1, or telemetry.sink=kafka" (int $telemetry.replicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Beside what it keeps, there is what is not sealed, and a reserve. */}}
{{- define "ordercast.validateSpool" -}}
{{- $settings := .Values.telemetry.settings -}}
{{- $kept := int64 (default 10737418240 $settings.retention_bytes) -}}
{{- $beside := add (int64 (default 536870912 $settings.unsealed_bytes_max)) (int64 (default 67108864 $settings.reserve_bytes)) -}}
{{- $size := .Values.telemetry.persistence.size -}}
{{- if gt (add $kept $beside) (int64 (include "ordercast.bytes" $size)) -}}
{{- fail (printf "telemetry.settings.retention_bytes is %d, and with what is written beside it the spool does not fit into its volume of %s: set it lower, or telemetry.persistence.size higher" $kept $size) -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateAnalytics" -}}
{{- $analytics := .Values.analytics -}}
{{- if $analytics.enabled -}}
{{- if not .Values.telemetry.enabled -}}
{{- fail "analytics.enabled reads what the telemetry service keeps: set telemetry.enabled=true" -}}
{{- end -}}
{{- if ne .Values.telemetry.sink "spool" -}}
{{- fail "analytics.enabled reads the spool, and telemetry.sink is kafka: set telemetry.sink=spool, or run the job elsewhere with --source kafka" -}}
{{- end -}}
{{- if eq $analytics.kind "SparkApplication" -}}
{{- if not $analytics.sparkApplication.image -}}
{{- fail "analytics.kind=SparkApplication needs an image with Spark's own entry point: set analytics.sparkApplication.image" -}}
{{- end -}}
{{- if ne $analytics.persistence.accessMode "ReadWriteMany" -}}
{{- fail "analytics.kind=SparkApplication has executors that write to the same volume: set analytics.persistence.accessMode=ReadWriteMany, with a storage class that can" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateClientService" -}}
{{- $service := .Values.clientService -}}
{{- if and (eq $service.type "ClusterIP") (not (kindIs "invalid" $service.nodePort)) -}}
{{- fail "clientService.nodePort is set, and the type is ClusterIP: set clientService.type to NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and (ne $service.type "LoadBalancer") $service.loadBalancerSourceRanges -}}
{{- fail "clientService.loadBalancerSourceRanges is for clientService.type=LoadBalancer: set that, or networkPolicy.clients" -}}
{{- end -}}
{{- end -}}

{{- define "ordercast.validateDomains" -}}
{{- $protocols := list "isis" "scalatom" -}}
{{- $nodes := include "ordercast.nodes" . | fromYaml -}}
{{- $compact := eq .Values.profile "compact" -}}
{{- $sequencers := int (get (get $nodes (ternary "node" "sequencer" $compact)) "replicas") -}}
{{- $acceptors := int (get (get $nodes (ternary "node" "consensus" $compact)) "replicas") -}}
{{- $domains := dict -}}
{{- $groups := dict -}}
{{- range $domain := .Values.domains -}}
{{- if hasKey $domains $domain.name -}}
{{- fail (printf "domains: %s is there twice: put its groups together" $domain.name) -}}
{{- end -}}
{{- $_ := set $domains $domain.name true -}}
{{- $protocol := default "scalatom" $domain.protocol -}}
{{- if not (has $protocol $protocols) -}}
{{- fail (printf "domains: %s has the protocol %q, and there are %s: set one of them" $domain.name $protocol (join ", " $protocols)) -}}
{{- end -}}
{{- range $group := $domain.groups -}}
{{- if hasKey $groups $group.name -}}
{{- fail (printf "domains: the group %s is there twice, and a name is one group's: rename one" $group.name) -}}
{{- end -}}
{{- $_ := set $groups $group.name true -}}
{{- $replicas := int (default 3 $group.replicas) -}}
{{- if eq (mod $replicas 2) 0 -}}
{{- fail (printf "domains: the group %s has %d replicas: an even number survives no more failures than one less. Set it to %d or %d" $group.name $replicas (sub $replicas 1) (add $replicas 1)) -}}
{{- end -}}
{{- if gt $replicas 7 -}}
{{- fail (printf "domains: the group %s has %d replicas, and 7 is the most: set it to 3, 5 or 7" $group.name $replicas) -}}
{{- end -}}
{{- if gt $replicas (min $sequencers $acceptors) -}}
{{- fail (printf "domains: the group %s has %d replicas, and there are %d sequencers and %d acceptors: set it lower, or %s higher" $group.name $replicas $sequencers $acceptors (ternary "compact.replicas" "sequencer.replicas and consensus.replicas" $compact)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
