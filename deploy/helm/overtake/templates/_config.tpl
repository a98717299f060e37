{{/* What the rest of the chart relies on, and so nobody else says. */}}
{{- define "overtake.fixedConfig" -}}
http:
  listen: "0.0.0.0:15672"
  {{- if .Values.tls.existingSecret }}
  tls_listen: "0.0.0.0:15671"
  {{- end }}
amqp:
  listen: "0.0.0.0:5672"
  {{- if .Values.tls.existingSecret }}
  tls_listen: "0.0.0.0:5671"
  {{- end }}
engine:
  kind: {{ .Values.engine.kind }}
  {{- if eq .Values.engine.kind "cluster" }}
  nodes:
    {{- toYaml .Values.engine.nodes | nindent 4 }}
  {{- with .Values.engine.username }}
  username: {{ . | quote }}
  {{- end }}
  {{- if .Values.engine.existingSecret }}
  password:
    file: /run/secrets/overtake-engine/password
  {{- end }}
  replicas_acked: {{ .Values.engine.replicasAcked }}
  fsync_acked: {{ .Values.engine.fsyncAcked }}
  {{- if .Values.engine.caSecret }}
  tls:
    ca_file: /run/secrets/overtake-engine-tls/ca.crt
  {{- end }}
  {{- end }}
{{- if eq .Values.engine.kind "embedded" }}
store:
  data_dir: /var/lib/overtake
{{- end }}
access:
  admin_user: {{ .Values.admin.user | quote }}
  admin_password_file: /run/secrets/overtake/password
{{- if .Values.tls.existingSecret }}
tls:
  cert_file: /run/secrets/overtake-tls/tls.crt
  key_file: /run/secrets/overtake-tls/tls.key
{{- end }}
{{- end }}

{{/* overtake.toml: the values' config with what is fixed. */}}
{{- define "overtake.config" -}}
{{- $config := deepCopy .Values.config }}
{{- range $section, $settings := include "overtake.fixedConfig" . | fromYaml }}
{{- $given := default dict (get $config $section) }}
{{- range $key, $value := $settings }}
{{- if hasKey $given $key }}
{{- fail (printf "config.%s.%s is the chart's to set; see service, tls, engine, persistence and admin in its values" $section $key) }}
{{- end }}
{{- end }}
{{- $_ := set $config $section (merge $given $settings) }}
{{- end }}
{{- range $section := keys $config | sortAlpha }}
{{- $settings := get $config $section }}
{{- if $settings }}
[{{ $section }}]
{{- range $key := keys $settings | sortAlpha }}
{{- if not (kindIs "invalid" (get $settings $key)) }}
{{ include "overtake.toml.key" $key }} = {{ include "overtake.toml" (get $settings $key) }}
{{- end }}
{{- end }}
{{ end }}
{{- end }}
{{- end }}

{{- define "overtake.toml.key" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toRawJson . }}{{ end }}
{{- end }}

{{/* A value as TOML has it. Strings, numbers and booleans are as in JSON; tables are not. */}}
{{- define "overtake.toml" -}}
{{- if kindIs "map" . }}
{{- $pairs := list }}
{{- range $key, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{- $pairs = append $pairs (printf "%s = %s" (include "overtake.toml.key" $key) (include "overtake.toml" $value)) }}
{{- end }}
{{- end }}
{{- printf "{ %s }" (join ", " $pairs) }}
{{- else if kindIs "slice" . }}
{{- $items := list }}
{{- range . }}{{ $items = append $items (include "overtake.toml" .) }}{{ end }}
{{- printf "[%s]" (join ", " $items) }}
{{- else }}
{{- toRawJson . }}
{{- end }}
{{- end }}
