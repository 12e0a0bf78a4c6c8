{{- define "stoker.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "stoker.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "stoker.name" .) .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "stoker.name" .) | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- /* Checks that values.schema.json cannot express. */}}
{{- define "stoker.checkValues" -}}
{{- $ports := list (int .Values.control.port) (int .Values.probes.port) }}
{{- if .Values.metrics.enabled }}{{ $ports = append $ports (int .Values.metrics.port) }}{{ end }}
{{- if .Values.debug.enabled }}{{ $ports = append $ports (int .Values.debug.port) }}{{ end }}
{{- if .Values.webhook.enabled }}{{ $ports = append $ports (int .Values.webhook.port) }}{{ end }}
{{- if ne (len $ports) (len (uniq $ports)) }}
{{- fail (printf "control.port, probes.port, metrics.port, debug.port and webhook.port must differ, they are %s" ($ports | join ", ")) }}
{{- end }}
{{- if ne .Values.node.kubeletDirectory (clean .Values.node.kubeletDirectory) }}
{{- fail (printf "node.kubeletDirectory must be a plain absolute path, not %s" .Values.node.kubeletDirectory) }}
{{- end }}
{{- end }}

{{- define "stoker.selectorLabels" -}}
app.kubernetes.io/name: {{ include "stoker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "stoker.nodeName" -}}
{{ include "stoker.fullname" . }}-node
{{- end }}

{{- define "stoker.nodeSelectorLabels" -}}
app.kubernetes.io/name: {{ include "stoker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "stoker.labels" -}}
{{ include "stoker.selectorLabels" . }}
app.kubernetes.io/part-of: stoker
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "stoker.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (printf "%s-operator" (include "stoker.fullname" .)) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* An image reference; takes a dict of `image` (a value with registry, repository, tag, digest) and `chart`. */}}
{{- define "stoker.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry }}{{ $name = printf "%s/%s" .image.registry .image.repository }}{{ end -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ default .chart.AppVersion .image.tag }}
{{- end -}}
{{- end }}

{{- define "stoker.controlServiceName" -}}
{{ include "stoker.fullname" . }}-control
{{- end }}

{{/* Written by the operator: its CA, which no pod mounts, and the certificates that callers must trust. */}}
{{- define "stoker.controlCaSecretName" -}}
{{ include "stoker.fullname" . }}-control-ca
{{- end }}

{{/* Of the webhook: its Service, its MutatingWebhookConfiguration, and with "-ca" its Secret. */}}
{{- define "stoker.webhookName" -}}
{{ include "stoker.fullname" . }}-webhook
{{- end }}

{{/* Annotations that name the section of docs/howto/runbooks.md; takes a dict of `alert` and `Values`. */}}
{{- define "stoker.runbook" -}}
runbook: docs/howto/runbooks.md#{{ lower .alert }}
{{- with .Values.metrics.prometheusRule.runbookUrl }}
runbook_url: {{ . }}#{{ lower $.alert }}
{{- end }}
{{- end }}

{{- define "stoker.controlTrustName" -}}
{{ include "stoker.fullname" . }}-control-trust
{{- end }}
