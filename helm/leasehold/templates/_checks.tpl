{{- /* What a schema cannot say: comparisons, and what goes with what. Each refusal begins with the value that it is about. */ -}}

{{- define "leasehold.notLonger" -}}
{{- $one := include "leasehold.milliseconds" .value | int64 -}}
{{- $other := include "leasehold.milliseconds" .than | int64 -}}
{{- if or (gt $one $other) (and .strict (eq $one $other)) -}}
{{- fail (printf "%s (%s) must %s %s (%s): %s" .name .value (ternary "be shorter than" "not be longer than" .strict) .thanName .than .why) -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.durationChecks" -}}
{{- range $name, $value := . -}}
{{- $milliseconds := include "leasehold.milliseconds" $value | int64 -}}
{{- if and (eq $milliseconds 0) (ne $name "config.snapshot.every") -}}
{{- fail (printf "%s (%s) must be longer than nothing" $name $value) -}}
{{- end -}}
{{- if and (gt $milliseconds 86400000) (ne $name "config.drain_timeout") -}}
{{- fail (printf "%s (%s) must not be longer than a day" $name $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.replicasMin" -}}
{{- ternary .Values.autoscaling.minReplicas .Values.replicas .Values.autoscaling.enabled | int64 -}}
{{- end -}}

{{- define "leasehold.replicasMax" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled | int64 -}}
{{- end -}}

{{- define "leasehold.timeChecks" -}}
{{- $config := .Values.config -}}
{{- $durations := dict -}}
{{- range $key, $value := $config -}}
{{- if kindIs "map" $value -}}
{{- range $inner, $text := $value -}}
{{- $isName := has $inner (list "account" "container" "filter" "prefix" "schema") -}}
{{- if and (not $isName) (regexMatch "^([0-9]+(ms|s|m|h) ?)+$" (toString $text)) -}}{{- $_ := set $durations (printf "config.%s.%s" $key $inner) $text -}}{{- end -}}
{{- end -}}
{{- else if kindIs "string" $value -}}
{{- $_ := set $durations (printf "config.%s" $key) $value -}}
{{- end -}}
{{- end -}}
{{- include "leasehold.durationChecks" $durations -}}
{{- include "leasehold.notLonger" (dict "name" "config.margin" "value" $config.margin "thanName" "config.ttl" "than" $config.ttl "strict" true
    "why" "a replica would count its lease as run out before it began") -}}
{{- with $config.renew_every -}}
{{- $left := printf "%dms" (sub (include "leasehold.milliseconds" $config.ttl | int64) (include "leasehold.milliseconds" $config.margin | int64)) -}}
{{- include "leasehold.notLonger" (dict "name" "config.renew_every" "value" . "thanName" "config.ttl without config.margin" "than" $left "strict" true
    "why" "a lease would run out between two renewals") -}}
{{- end -}}
{{- include "leasehold.notLonger" (dict "name" "config.drain_timeout" "value" $config.drain_timeout "thanName" "config.grace_period" "than" $config.grace_period "strict" false
    "why" "a shutdown would be over before a handoff gives up") -}}
{{- include "leasehold.notLonger" (dict "name" "config.postgres.lock_timeout" "value" $config.postgres.lock_timeout "thanName" "config.postgres.statement_timeout" "than" $config.postgres.statement_timeout "strict" true
    "why" "a statement that waits would be given up before it gives up itself") -}}
{{- include "leasehold.notLonger" (dict "name" "config.azure.request_timeout" "value" $config.azure.request_timeout "thanName" "config.azure.retry_for" "than" $config.azure.retry_for "strict" false
    "why" "a request would have failed before its first attempt has") -}}
{{- end -}}

{{- define "leasehold.backendChecks" -}}
{{- $values := .Values -}}
{{- $_ := required "derivationKey.existingSecret is required: every replica derives tenant ids by the same key, so make it once (`openssl rand -hex 32`) and name the Secret that holds it" $values.derivationKey.existingSecret -}}
{{- $_ := required "postgres.existingSecret is required: name the Secret that holds the connection string" $values.postgres.existingSecret -}}
{{- $_ := required "config.azure.container is required: name the container of the images" $values.config.azure.container -}}
{{- if and $values.postgres.rootCertificates.existingConfigMap (not (has $values.config.postgres.sslmode (list "verify-ca" "verify-full"))) -}}
{{- fail "postgres.rootCertificates.existingConfigMap is set, and config.postgres.sslmode is not verify-ca or verify-full: no certificate would be looked at" -}}
{{- end -}}
{{- $way := $values.azure.wayIn -}}
{{- if has $way (list "connection-string" "account-key" "sas") -}}
{{- if not (and $values.azure.existingSecret $values.azure.key) -}}
{{- fail (printf "azure.existingSecret and azure.key are required with azure.wayIn %s: name the Secret that holds it, and its key there" $way) -}}
{{- end -}}
{{- if or $values.azure.clientId $values.azure.tenantId -}}
{{- fail (printf "azure.clientId and azure.tenantId mean nothing with azure.wayIn %s: leave them out" $way) -}}
{{- end -}}
{{- else -}}
{{- if or $values.azure.existingSecret $values.azure.key -}}
{{- fail (printf "azure.existingSecret and azure.key mean nothing with azure.wayIn %s: leave them out, or choose another way in" $way) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $way "managed-identity") $values.azure.tenantId -}}
{{- fail "azure.tenantId means nothing with azure.wayIn managed-identity: leave it out" -}}
{{- end -}}
{{- if and (eq $way "workload-identity") $values.serviceAccount.create (not $values.azure.clientId) -}}
{{- fail "azure.clientId is required with azure.wayIn workload-identity: the service account is annotated with it" -}}
{{- end -}}
{{- if eq $way "connection-string" -}}
{{- if $values.config.azure.account -}}{{- fail "config.azure.account means nothing with azure.wayIn connection-string, which names it: leave it out" -}}{{- end -}}
{{- else -}}
{{- $_ := required "config.azure.account is required: name the storage account" $values.config.azure.account -}}
{{- end -}}
{{- if and (eq $values.migration.by "job") (not $values.migration.existingSecret) -}}
{{- fail "migration.existingSecret is required with migration.by job: name the Secret that holds the connection string of the role that owns the schema" -}}
{{- end -}}
{{- if and (eq $values.migration.by "job") (eq $way "workload-identity") (not (or $values.azure.clientId $values.migration.clientId)) -}}
{{- fail "migration.clientId is required with migration.by job and azure.wayIn workload-identity where azure.clientId is not set: the Job has a service account of its own" -}}
{{- end -}}
{{- if and (ne $values.migration.by "job") $values.migration.existingSecret -}}
{{- fail (printf "migration.existingSecret is set, and migration.by is %s: only a job uses it" $values.migration.by) -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.callerChecks" -}}
{{- $values := .Values -}}
{{- if and $values.peers.port (not $values.peers.existingSecret) -}}
{{- fail "peers.port is set, and peers.existingSecret is not: without a secret no replica asks another one" -}}
{{- end -}}
{{- if and $values.peers.port (eq (int64 $values.peers.port) (int64 $values.service.port)) -}}
{{- fail (printf "peers.port (%d) is service.port too: replicas have one of their own, or share that one (0)" (int64 $values.peers.port)) -}}
{{- end -}}
{{- $keys := include "leasehold.issuerKeys" . | fromJsonArray -}}
{{- if and $keys (not $values.issuerKeys.existingSecret) -}}
{{- fail (printf "issuerKeys.existingSecret is required: config.auth.issuers names its %s" (join ", " $keys)) -}}
{{- end -}}
{{- if and $values.issuerKeys.existingSecret (not $keys) -}}
{{- fail "issuerKeys.existingSecret is set, and no issuer of config.auth.issuers names a file of it" -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled $values.tls.existingSecret (not $values.serviceMonitor.tlsConfig) -}}
{{- fail "serviceMonitor.tlsConfig is required with tls.existingSecret: say by which authority and name Prometheus knows a replica (ca, serverName)" -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.fleetChecks" -}}
{{- $values := .Values -}}
{{- $min := include "leasehold.replicasMin" . | int64 -}}
{{- $max := include "leasehold.replicasMax" . | int64 -}}
{{- if gt $min $max -}}
{{- fail (printf "autoscaling.minReplicas (%d) must not be more than autoscaling.maxReplicas (%d)" $min $max) -}}
{{- end -}}
{{- $unavailable := int64 $values.podDisruptionBudget.maxUnavailable -}}
{{- if and $values.podDisruptionBudget.enabled (gt $min 1) (ge $unavailable $min) -}}
{{- fail (printf "podDisruptionBudget.maxUnavailable (%d) must be less than the %d replicas: all of them could be evicted at once" $unavailable $min) -}}
{{- end -}}
{{- $connections := mul $max (add 2 (int64 $values.config.postgres.pool_max)) -}}
{{- $connectionsMax := int64 $values.postgres.connectionsMax -}}
{{- if and (gt $connectionsMax 0) (gt $connections $connectionsMax) -}}
{{- fail (printf "config.postgres.pool_max (%d): %d replicas can open %d connections (each pool_max + 2), and postgres.connectionsMax is %d" (int64 $values.config.postgres.pool_max) $max $connections $connectionsMax) -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled $values.networkPolicy.enabled (not $values.networkPolicy.monitoringNamespaces) -}}
{{- fail "networkPolicy.monitoringNamespaces is required with serviceMonitor.enabled: name the namespace that Prometheus runs in, or it reads nothing" -}}
{{- end -}}
{{- if $values.serviceMonitor.enabled -}}
{{- include "leasehold.notLonger" (dict "name" "serviceMonitor.scrapeTimeout" "value" $values.serviceMonitor.scrapeTimeout "thanName" "serviceMonitor.interval" "than" $values.serviceMonitor.interval "strict" false
    "why" "Prometheus refuses it") -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled (eq $values.config.auth.mode "required") (not $values.config.auth.open_metrics) -}}
{{- fail "serviceMonitor.enabled with config.auth.mode: required needs config.auth.open_metrics: true, or Prometheus reads nothing; the NetworkPolicy says from where /metrics is reached" -}}
{{- end -}}
{{- if $values.prometheusRule.enabled -}}
{{- $thrice := mul 3 (include "leasehold.milliseconds" $values.config.snapshot.every | int64) -}}
{{- include "leasehold.notLonger" (dict "name" "three times config.snapshot.every" "value" (printf "%dms" $thrice) "thanName" "prometheusRule.snapshotAgeMax" "than" $values.prometheusRule.snapshotAgeMax "strict" false
    "why" "it would fire while all is well") -}}
{{- if lt (int64 $values.prometheusRule.unflushedBytesMax) (int64 $values.config.snapshot.unflushed_bytes_max) -}}
{{- fail (printf "prometheusRule.unflushedBytesMax (%d) must not be less than config.snapshot.unflushed_bytes_max (%d): it would fire while all is well" (int64 $values.prometheusRule.unflushedBytesMax) (int64 $values.config.snapshot.unflushed_bytes_max)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.checks" -}}
{{- if not .Values.config.auth.mode -}}
{{- fail "config.auth.mode is required: replicas listen where other pods reach them. Set it to required, so that callers show a token; or to none-acknowledged where something in front of them knows their callers: whoever reaches the port then reads, writes and forgets every tenant" -}}
{{- end -}}
{{- include "leasehold.timeChecks" . -}}
{{- include "leasehold.backendChecks" . -}}
{{- include "leasehold.callerChecks" . -}}
{{- include "leasehold.fleetChecks" . -}}
{{- end -}}
