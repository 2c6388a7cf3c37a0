{{- /* Milliseconds of a duration as the configuration spells it: `500ms`, `10s`, `1m 30s`. The schema has seen to its form. */ -}}
{{- define "leasehold.milliseconds" -}}
{{- $total := 0 -}}
{{- range $part := regexFindAll "[0-9]+(ms|s|m|h)" (toString .) -1 -}}
{{- $number := regexFind "^[0-9]+" $part | int64 -}}
{{- $unit := trimPrefix (regexFind "^[0-9]+" $part) $part -}}
{{- $total = add $total (mul $number (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit)) -}}
{{- end -}}
{{- $total -}}
{{- end -}}

{{- /* The same in whole seconds, rounded up. */ -}}
{{- define "leasehold.seconds" -}}
{{- div (add (include "leasehold.milliseconds" . | int64) 999) 1000 -}}
{{- end -}}

{{- /*
What the kubelet waits before it kills. The grace period is for handing off and for the connections; where the database is away, giving
the leases back (5 s at the most) comes on top, and then the connections' least share (5 s), telling the fleet that it is gone (one
statement) and ending the threads (1 s).
*/ -}}
{{- define "leasehold.terminationSeconds" -}}
{{- $grace := include "leasehold.seconds" .Values.config.grace_period | int64 -}}
{{- $statement := include "leasehold.seconds" .Values.config.postgres.statement_timeout | int64 -}}
{{- add (int64 .Values.preStopSleepSeconds) $grace $statement 15 -}}
{{- end -}}
