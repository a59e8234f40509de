{{- define "clew.name" -}}
{{- printf "%s-clew" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "clew.labels" -}}
{{ include "clew.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "clew.selector" -}}
app.kubernetes.io/name: clew
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "clew.account" -}}
{{- .Values.serviceAccount.name | default (include "clew.name" .) -}}
{{- end }}

{{- define "clew.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What every container of clew may do: nothing. */}}
{{- define "clew.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The configuration; with a Ray cluster, where it is. */}}
{{- define "clew.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.ray.enabled -}}
{{- $stage := dict "minimum" 1 "maximum" (max 1 (mul (int .Values.ray.extraction.maximum) (int .Values.ray.extraction.cpus))) -}}
{{- $cluster := dict "address" (printf "%s-ray-head-svc:6379" (include "clew.name" .)) "extraction" $stage -}}
{{- if .Values.ray.embedding.maximum -}}
{{- $_ := set $cluster "embedding" (dict "minimum" (int .Values.ray.embedding.maximum) "gpus" 1 "cpus" 1) -}}
{{- end -}}
{{- $_ := set $config "engine" "ray" -}}
{{- $_ := set $config "cluster" $cluster -}}
{{- end -}}
{{- if .Values.ray.query.enabled -}}
{{- /* The replicas are those of the RayService; this process keeps the indexes, and answers whoever asks it. */ -}}
{{- $query := .Values.ray.query -}}
{{- $_ := set $config "query" (dict "engine" "local" "minimum" (int $query.minimum) "maximum" (int $query.maximum) "cpus" (int $query.cpus) "cache" $query.cache) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{- define "clew.rayImage" -}}
{{ .Values.ray.image.repository }}:{{ .Values.ray.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* KubeRay's own probes take wget, which the image has not. */}}
{{- define "clew.rayProbes" -}}
{{- $probe := list "python" "-c" "import urllib.request; urllib.request.urlopen('http://127.0.0.1:52365/api/local_raylet_healthz', timeout=4)" -}}
{{- range $kind := list "readinessProbe" "livenessProbe" }}
{{ $kind }}:
  exec: {command: {{ toJson $probe }}}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 8
  failureThreshold: 12
{{- end }}
{{- end }}

{{- define "clew.environment" -}}
env:
  - {name: CLEW_PATIENCE, value: "30"}
  {{- range $name, $value := .Values.environment }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- with .Values.environmentSecrets }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
{{- end }}
