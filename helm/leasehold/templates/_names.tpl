{{- /* The name of everything that is the release's. A replica's pod, its label of a revision and a service take it as a DNS label. */ -}}
{{- define "leasehold.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- end -}}
{{- $full = $full | trunc 50 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $full) -}}
{{- fail (printf "fullnameOverride: `%s` names services and pods, and is no DNS label (a-z, 0-9 and `-`, beginning with a letter): set another" $full) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{- define "leasehold.headless" -}}
{{ include "leasehold.fullname" . }}-headless
{{- end -}}

{{- define "leasehold.migrate" -}}
{{ include "leasehold.fullname" . }}-migrate
{{- end -}}

{{- define "leasehold.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "leasehold.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is required where serviceAccount.create is false: name the service account that is there" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.image" -}}
{{- $repository := required "image.repository is required: no image of Leasehold is published, so name the one that you pushed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "leasehold.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leasehold.labels" -}}
{{ include "leasehold.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* A replica's pod, and nothing else. */ -}}
{{- define "leasehold.replicaSelector" -}}
{{ include "leasehold.selector" . }}
app.kubernetes.io/component: replica
{{- end -}}

{{- /* The Job's objects come and go with it, before those of the release. */ -}}
{{- define "leasehold.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
