{{- define "leasehold.tomlValue" -}}
{{- if kindIs "string" . -}}
{{ toJson . }}
{{- else if kindIs "bool" . -}}
{{ . }}
{{- /* A list of tables is a text that holds it as JSON. */ -}}
{{- else if kindIs "slice" . -}}
{{ toJson (toJson .) }}
{{- /* Every number of a values file is a float to Helm; only those that are whole are written so. */ -}}
{{- else if eq (float64 .) (float64 (int64 .)) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{- /* Where a file of the projected volume is seen. */ -}}
{{- define "leasehold.file" -}}
/etc/leasehold/{{ . }}
{{- end -}}

{{- /* The files that are secrets or roots, as sources of the projected volume, for whoever's connection string `urlSecret` and `urlKey` name. */ -}}
{{- define "leasehold.secretSources" -}}
{{- $values := .root.Values -}}
- secret:
    name: {{ .urlSecret }}
    items:
      - key: {{ .urlKey }}
        path: postgres-url
{{- if has $values.azure.wayIn (list "connection-string" "account-key" "sas") }}
- secret:
    name: {{ $values.azure.existingSecret }}
    items:
      - key: {{ $values.azure.key }}
        path: azure-{{ $values.azure.wayIn }}
{{- end }}
{{- with $values.postgres.rootCertificates.existingConfigMap }}
- configMap:
    name: {{ . }}
    items:
      - key: {{ $values.postgres.rootCertificates.key }}
        path: postgres-ca.crt
{{- end }}
{{- end -}}

{{- define "leasehold.scheme" -}}
{{- ternary "https" "http" (not (empty .Values.tls.existingSecret)) -}}
{{- end -}}

{{- /* Where the other replicas reach this one: the pod's name goes before it. */ -}}
{{- define "leasehold.peerPort" -}}
{{- default .Values.service.port .Values.peers.port | int64 -}}
{{- end -}}

{{- /* The files of issuers' keys that the configuration names. */ -}}
{{- define "leasehold.issuerKeys" -}}
{{- $keys := list -}}
{{- range .Values.config.auth.issuers -}}
{{- with default .hmac_key_file .keys_file -}}{{- $keys = append $keys (base .) -}}{{- end -}}
{{- end -}}
{{- toJson (uniq $keys) -}}
{{- end -}}

{{- /* What only a replica is given: who callers are, and who it is itself. */ -}}
{{- define "leasehold.servingSources" -}}
{{- $values := .Values -}}
- secret:
    name: {{ $values.derivationKey.existingSecret }}
    items:
      - key: {{ $values.derivationKey.key }}
        path: derivation-key
{{- with $values.peers.existingSecret }}
- secret:
    name: {{ . }}
    items:
      - key: {{ $values.peers.key }}
        path: peer-secret
{{- end }}
{{- with $values.tls.existingSecret }}
- secret:
    name: {{ . }}
    items:
      - key: {{ $values.tls.certificateKey }}
        path: tls.crt
      - key: {{ $values.tls.keyKey }}
        path: tls.key
{{- end }}
{{- with $values.peers.authority.existingSecret }}
- secret:
    name: {{ . }}
    items:
      - key: {{ $values.peers.authority.key }}
        path: peers-ca.crt
{{- end }}
{{- with include "leasehold.issuerKeys" . | fromJsonArray }}
- secret:
    name: {{ $values.issuerKeys.existingSecret }}
    items:
      {{- range . }}
      - key: {{ . }}
        path: issuers/{{ . }}
      {{- end }}
{{- end }}
{{- end -}}

{{- /* The configuration file: what the values say, and over it what the chart knows by itself. */ -}}
{{- define "leasehold.toml" -}}
{{- trim (include "leasehold.tomlText" .) -}}
{{- end -}}

{{- define "leasehold.tomlText" -}}
{{- include "leasehold.checks" . -}}
{{- $values := .Values -}}
{{- $config := deepCopy $values.config -}}
{{- $_ := set $config "listen" (printf "%s:%d" $values.service.listenHost (int $values.service.port)) -}}
{{- $_ := set $config "data_dir" "/var/lib/leasehold" -}}
{{- $_ := set $config "derivation_key_file" (include "leasehold.file" "derivation-key") -}}
{{- $postgres := $config.postgres -}}
{{- $_ := set $postgres "url_file" (include "leasehold.file" "postgres-url") -}}
{{- $_ := set $postgres "migrate" (eq $values.migration.by "replica") -}}
{{- if $values.postgres.rootCertificates.existingConfigMap -}}
{{- $_ := set $postgres "sslrootcert" (include "leasehold.file" "postgres-ca.crt") -}}
{{- end -}}
{{- if $values.peers.existingSecret -}}
{{- $_ := set $config "peers" (set (default dict $config.peers) "secret_file" (include "leasehold.file" "peer-secret")) -}}
{{- end -}}
{{- if $values.peers.port -}}
{{- $_ := set $config "peers" (set (default dict $config.peers) "listen" (printf "%s:%d" $values.service.listenHost (int $values.peers.port))) -}}
{{- end -}}
{{- if $values.peers.authority.existingSecret -}}
{{- $_ := set $config "peers" (set (default dict $config.peers) "ca_file" (include "leasehold.file" "peers-ca.crt")) -}}
{{- end -}}
{{- if $values.tls.existingSecret -}}
{{- $_ := set $config "tls" (dict "cert_file" (include "leasehold.file" "tls.crt") "key_file" (include "leasehold.file" "tls.key")) -}}
{{- end -}}
{{- $azure := $config.azure -}}
{{- $way := $values.azure.wayIn -}}
{{- if eq $way "workload-identity" -}}
{{- $_ := set $azure "identity" "workload" -}}
{{- else if eq $way "managed-identity" -}}
{{- $_ := set $azure "identity" "managed" -}}
{{- with $values.azure.clientId -}}{{- $_ := set $azure "client_id" . -}}{{- end -}}
{{- else -}}
{{- $_ := set $azure (printf "%s_file" ($way | replace "-" "_")) (include "leasehold.file" (printf "azure-%s" $way)) -}}
{{- end -}}
{{- if not $azure.account -}}{{- $_ := unset $azure "account" -}}{{- end -}}
{{- range $key, $value := $config -}}
{{- if not (kindIs "map" $value) }}
{{ $key }} = {{ include "leasehold.tomlValue" $value }}
{{- end -}}
{{- end -}}
{{- range $section, $keys := $config -}}
{{- if kindIs "map" $keys }}

[{{ $section }}]
{{- range $key, $value := $keys }}
{{ $key }} = {{ include "leasehold.tomlValue" $value }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
