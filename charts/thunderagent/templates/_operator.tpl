{{/* The operator's settings: controller/settings.py. Election is never off, or an upgrade would have two that act. */}}
{{- define "thunderagent.operatorEnv" -}}
- name: THUNDERAGENT_OPERATOR_NAMESPACE
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: metadata.namespace
- name: THUNDERAGENT_POD_NAME
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: metadata.name
- name: THUNDERAGENT_OPERATOR_LEASE
  value: {{ include "thunderagent.fullname" . }}
- name: THUNDERAGENT_OPERATOR_PORT
  value: "8080"
{{- with .Values.scope.namespaces }}
- name: THUNDERAGENT_OPERATOR_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with include "thunderagent.allowed" . }}
- name: THUNDERAGENT_OPERATOR_ALLOWED
  value: {{ . | quote }}
{{- end }}
{{- range $name, $variable := dict "listSeconds" "LIST_SECONDS" "cycleLimit" "CYCLE_LIMIT" "stall" "STALL" "readThreads" "READ_THREADS" "apiThreads" "API_THREADS" }}
{{- $value := index $.Values.settings $name }}
{{- if not (kindIs "invalid" $value) }}
- name: THUNDERAGENT_OPERATOR_{{ $variable }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with .Values.aws.region }}
{{- /* botocore reads the second, other tools the first. */}}
- name: AWS_REGION
  value: {{ . | quote }}
- name: AWS_DEFAULT_REGION
  value: {{ . | quote }}
{{- end }}
{{- if .Values.demo.enabled }}
{{ include "thunderagent.demoCredentials" . }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Replicas of one operator that share a node or a zone would go together. */}}
{{- define "thunderagent.spread" -}}
{{- $constraints := .Values.topologySpreadConstraints }}
{{- if and (gt (int .Values.replicaCount) 1) (not $constraints) }}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" $key "whenUnsatisfiable" "ScheduleAnyway") }}
{{- end }}
{{- end }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "thunderagent.selectorLabels" . | fromYaml)) }}
{{- range $constraint := $constraints }}
{{ toYaml (list (ternary $constraint (merge (dict) $constraint $selector) (hasKey $constraint "labelSelector"))) }}
{{- end }}
{{- end }}
