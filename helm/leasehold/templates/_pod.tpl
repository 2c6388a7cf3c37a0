{{- /* The restricted Pod Security Standard, for every pod of the chart. */ -}}
{{- define "leasehold.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.security.runAsUser }}
runAsGroup: {{ int64 .Values.security.runAsGroup }}
fsGroup: {{ int64 .Values.security.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "leasehold.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* By this label AKS gives a pod the token of its service account's identity. */ -}}
{{- define "leasehold.identityLabel" -}}
{{- if eq .Values.azure.wayIn "workload-identity" -}}
azure.workload.identity/use: "true"
{{- end -}}
{{- end -}}

{{- define "leasehold.identityAnnotations" -}}
{{- if eq .root.Values.azure.wayIn "workload-identity" -}}
azure.workload.identity/client-id: {{ .clientId | quote }}
{{- with .root.Values.azure.tenantId }}
azure.workload.identity/tenant-id: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}
