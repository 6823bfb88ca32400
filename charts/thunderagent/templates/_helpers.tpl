{{/* The name of the chart, as a label. */}}
{{- define "thunderagent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* What the names of the objects begin with. 40 characters leave room for what is put behind. */}}
{{- define "thunderagent.fullname" -}}
{{- $name := include "thunderagent.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Cluster-wide objects of two releases of one name in different namespaces must not be the same. */}}
{{- define "thunderagent.clusterName" -}}
{{- $full := include "thunderagent.fullname" . }}
{{- if eq $full .Release.Namespace }}{{ $full }}{{ else }}{{ printf "%s-%s" .Release.Namespace $full | trunc 55 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "thunderagent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: thunderagent
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "thunderagent.selectorLabels" . }}
{{- end }}

{{/* Labels by which the operator's pods are found. They must never change: a Deployment's selector cannot. */}}
{{- define "thunderagent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "thunderagent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* The same for other components: a dict with root and component. */}}
{{- define "thunderagent.componentSelectorLabels" -}}
app.kubernetes.io/name: {{ include "thunderagent.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "thunderagent.componentLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: thunderagent
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{ include "thunderagent.componentSelectorLabels" . }}
{{- end }}

{{- define "thunderagent.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "thunderagent.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The name of an image: a dict with root and image. */}}
{{- define "thunderagent.image" -}}
{{- if eq (toString .image.tag) "latest" }}
{{- fail (printf "The tag latest of %s does not say what runs: name another, or leave it empty for %s." .image.repository .root.Chart.AppVersion) }}
{{- end }}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{/* What the restricted Pod Security level asks of a pod. */}}
{{- define "thunderagent.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What it asks of a container. Nothing of ours writes to its own file system. */}}
{{- define "thunderagent.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Rules of the operator in each namespace that it serves. Exactly what controller/kube.py and controller/watch.py ask for. */}}
{{- define "thunderagent.rules" -}}
- apiGroups: [thunderagent.dev]
  resources: [thunderagentpools]
  verbs: [get, list, watch]
- apiGroups: [thunderagent.dev]
  resources: [thunderagentpools/status]
  verbs: [patch]
# Server-side apply creates by the verb create and changes by the verb patch.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, create, patch]
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [update]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
# Deletion costs, and the annotations of busy pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Name and address of the demo's DynamoDB. */}}
{{- define "thunderagent.demoDynamodb" -}}
{{- printf "%s-demo-dynamodb" (include "thunderagent.fullname" .) }}
{{- end }}

{{- define "thunderagent.demoEndpoint" -}}
{{- printf "http://%s.%s:8000" (include "thunderagent.demoDynamodb" .) .Release.Namespace }}
{{- end }}

{{/* Credentials of nobody: a request has to be signed, and the embedded DynamoDB does not look at it. */}}
{{- define "thunderagent.demoCredentials" -}}
- name: AWS_ACCESS_KEY_ID
  value: demo
- name: AWS_SECRET_ACCESS_KEY
  value: demo
{{- end }}

{{/*
The rules of `allowed` as a JSON list; empty for the operator's default. The demo's rule is added to what holds without it: an
empty list means the default, which is the rule {}.
*/}}
{{- define "thunderagent.allowed" -}}
{{- $rules := .Values.allowed }}
{{- if .Values.demo.enabled }}
{{- $demo := dict "namespaces" (list .Release.Namespace) "endpoints" (list (include "thunderagent.demoEndpoint" .)) }}
{{- $rules = append (default (list dict) $rules) $demo }}
{{- end }}
{{- if $rules }}{{ toJson $rules }}{{ end }}
{{- end }}

{{/* The ports of the endpoints that are allowed, as JSON: {"ports": [8000], "any": false}. any: a pattern leaves it open. */}}
{{- define "thunderagent.endpointPorts" -}}
{{- $ports := list }}
{{- $any := false }}
{{- range $rule := (include "thunderagent.allowed" . | default "[]" | fromJsonArray) }}
{{- range $endpoint := $rule.endpoints }}
{{- $port := regexFind "^https?://[^/]*:[0-9]+(/|$)" $endpoint | trimSuffix "/" | splitList ":" | last }}
{{- if $port }}
{{- $ports = append $ports (int $port) }}
{{- else if regexMatch "[*?\\[]" $endpoint }}
{{- $any = true }}
{{- else }}
{{- $ports = append $ports (ternary 80 443 (hasPrefix "http:" $endpoint)) }}
{{- end }}
{{- end }}
{{- end }}
{{- dict "ports" ($ports | uniq) "any" $any | toJson }}
{{- end }}
