{{/* One name for all objects of a release. */}}
{{- define "holdfast.name" -}}
{{- if contains "holdfast" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-holdfast" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "holdfast.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The file of every gateway: what the chart's other objects rely on, and the values' own part. */}}
{{- define "holdfast.config" -}}
{{ include "holdfast.process" . }}

{{ .Values.config }}
{{- end }}

{{/* Settings that a gateway reads only at its start. */}}
{{- define "holdfast.process" -}}
[server]
listen = "0.0.0.0:8080"
secrets = [{{ range $at, $name := .Values.server.secrets }}{{ if $at }}, {{ end }}"${file:/run/secrets/holdfast/{{ $name }}}"{{ end }}]
drain = "{{ int .Values.drain.seconds }}s"
drain_delay = "{{ int .Values.drain.delaySeconds }}s"
{{- with .Values.server.url }}
url = {{ toJson . }}
{{- end }}
trusted_proxies = {{ toJson (.Values.server.trustedProxies | default list) }}
cors_origins = {{ toJson (.Values.server.corsOrigins | default list) }}

[admin]
listen = "0.0.0.0:8081"
token = "${file:/run/secrets/holdfast/admin-token}"
{{- include "holdfast.behindProxy" (list "admin" .Values.admin) }}

[console]
playground = {{ .Values.console.playground | default false }}
{{- if .Values.console.url }}
listen = "0.0.0.0:8083"
{{- include "holdfast.behindProxy" (list "console" .Values.console) }}
{{- end }}

[node]
listen = "0.0.0.0:8082"
advertise = "${POD_IP}:8082"

[database]
url = "${file:/run/secrets/holdfast/database-url}"

[log]
format = "json"
level = {{ toJson .Values.log.level }}
{{- end }}

{{/* Address of a listener with pages: only behind a proxy with TLS. */}}
{{- define "holdfast.behindProxy" -}}
{{- $table := index . 0 }}
{{- with index . 1 }}
{{- if .url }}
{{- if not (hasPrefix "https://" .url) }}
{{- fail (printf "%s.url must be the https:// address of a proxy with TLS, not %q" $table .url) }}
{{- end }}
url = {{ toJson .url }}
proxies = {{ toJson (.proxies | default list) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holdfast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "holdfast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* The two folders that a container reads. */}}
{{- define "holdfast.mounts" -}}
- { name: config, mountPath: /etc/holdfast, readOnly: true }
- { name: secrets, mountPath: /run/secrets/holdfast, readOnly: true }
{{- end }}

{{- define "holdfast.env" -}}
- name: HOLDFAST_CONFIG
  value: /etc/holdfast/holdfast.toml
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
{{- end }}

{{/* The nodes that a pod may be on. */}}
{{- define "holdfast.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
