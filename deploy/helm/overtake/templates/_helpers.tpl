{{- define "overtake.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Fifty characters, since "-headless" comes behind it, and a pod's number and hash. */}}
{{- define "overtake.fullname" -}}
{{- $name := include "overtake.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "overtake.selectorLabels" -}}
app.kubernetes.io/name: {{ include "overtake.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "overtake.labels" -}}
{{ include "overtake.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "overtake.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "overtake.adminSecret" -}}
{{- default (printf "%s-admin" (include "overtake.fullname" .)) .Values.admin.existingSecret }}
{{- end }}

{{/* The drain of preStop, server.drain_timeout_ms, and time to close the store. */}}
{{- define "overtake.graceSeconds" -}}
{{- $server := default dict .Values.config.server }}
{{- $timeout := divf (get $server "drain_timeout_ms" | default 10000) 1000 | ceil | int }}
{{- add .Values.drain.withinSeconds $timeout 35 }}
{{- end }}

{{/* The ports, by name, as a map: of the container, and of the services that lead there. */}}
{{- define "overtake.servicePorts" -}}
- name: amqp
  port: {{ .Values.service.amqpPort }}
  targetPort: amqp
  appProtocol: amqp
- name: http
  port: {{ .Values.service.httpPort }}
  targetPort: http
  appProtocol: http
{{- if .Values.tls.existingSecret }}
- name: amqps
  port: {{ .Values.tls.amqpsPort }}
  targetPort: amqps
  appProtocol: amqps
- name: https
  port: {{ .Values.tls.httpsPort }}
  targetPort: https
  appProtocol: https
{{- end }}
{{- end }}
