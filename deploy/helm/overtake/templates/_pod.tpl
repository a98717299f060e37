{{/* The pod's specification, whatever keeps it running. */}}
{{- define "overtake.pod" -}}
automountServiceAccountToken: false
# The variables of a service called overtake would read like settings.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ include "overtake.graceSeconds" . }}
{{- with .Values.serviceAccount.name }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
containers:
  - name: overtake
    image: {{ include "overtake.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve]
    env:
      # Who the command line is in this container.
      - name: OVERTAKE_USER
        value: {{ .Values.admin.user | quote }}
      - name: OVERTAKE_PASSWORD_FILE
        value: /run/secrets/overtake/password
      {{- with .Values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    ports:
      - name: amqp
        containerPort: 5672
      - name: http
        containerPort: 15672
      {{- if .Values.tls.existingSecret }}
      - name: amqps
        containerPort: 5671
      - name: https
        containerPort: 15671
      {{- end }}
    # The ports are served once the store is read, and reading a deep backlog takes a while.
    startupProbe:
      httpGet:
        path: /livez
        port: http
      periodSeconds: 5
      timeoutSeconds: 4
      failureThreshold: {{ max 1 (divf .Values.startup.maxSeconds 5 | ceil | int) }}
    livenessProbe:
      httpGet:
        path: /livez
        port: http
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 3
    readinessProbe:
      httpGet:
        path: /readyz
        port: http
      periodSeconds: 5
      timeoutSeconds: 4
      failureThreshold: 2
    lifecycle:
      preStop:
        # Consumers finish what they hold. Whatever is left after that is put back.
        exec:
          command: [overtake, drain, --within, {{ .Values.drain.withinSeconds }}s, --quiet]
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      {{- toYaml .Values.securityContext | nindent 6 }}
    volumeMounts:
      {{- if eq .Values.engine.kind "embedded" }}
      - name: data
        mountPath: /var/lib/overtake
      {{- end }}
      - name: config
        mountPath: /etc/overtake
        readOnly: true
      - name: admin
        mountPath: /run/secrets/overtake
        readOnly: true
      {{- if .Values.engine.existingSecret }}
      - name: engine
        mountPath: /run/secrets/overtake-engine
        readOnly: true
      {{- end }}
      {{- if .Values.engine.caSecret }}
      - name: engine-tls
        mountPath: /run/secrets/overtake-engine-tls
        readOnly: true
      {{- end }}
      {{- if .Values.tls.existingSecret }}
      - name: tls
        mountPath: /run/secrets/overtake-tls
        readOnly: true
      {{- end }}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "overtake.fullname" . }}
  - name: admin
    secret:
      secretName: {{ include "overtake.adminSecret" . }}
      defaultMode: 0440
      items:
        - key: {{ .Values.admin.passwordKey }}
          path: password
  {{- with .Values.engine.existingSecret }}
  - name: engine
    secret:
      secretName: {{ . }}
      defaultMode: 0440
      items:
        - key: {{ $.Values.engine.passwordKey }}
          path: password
  {{- end }}
  {{- with .Values.engine.caSecret }}
  - name: engine-tls
    secret:
      secretName: {{ . }}
      defaultMode: 0440
      items:
        - key: ca.crt
          path: ca.crt
  {{- end }}
  {{- with .Values.tls.existingSecret }}
  - name: tls
    secret:
      secretName: {{ . }}
      defaultMode: 0440
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
