{{- define "leasehold.egressTo" -}}
- ports:
    {{- range .ports }}
    - port: {{ int64 . }}
      protocol: TCP
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* What every process of the chart reaches: names, the database, the store. */ -}}
{{- define "leasehold.egress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{ include "leasehold.egressTo" .Values.networkPolicy.postgres }}
{{ include "leasehold.egressTo" .Values.networkPolicy.store }}
{{- if eq .Values.azure.wayIn "managed-identity" }}
# The machine's metadata service, which gives out its identity's tokens.
- ports:
    - port: 80
      protocol: TCP
  to:
    - ipBlock:
        cidr: 169.254.169.254/32
{{- end }}
{{- end -}}
