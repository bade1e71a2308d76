{{- /*
Names do not follow the release: the Lease, the Services and the scheduler's name are known to task pods and policies,
and a cluster has one Boathouse. Helm refuses a second release, because the cluster-wide objects exist.
*/ -}}
{{- define "boathouse.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: boathouse
{{ include "boathouse.selectorLabels" . }}
{{- end }}

{{- define "boathouse.selectorLabels" -}}
app.kubernetes.io/name: boathouse
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "boathouse.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:boathouse
{{- end }}

{{- /* Argument: (dict "image" .Values.image "chart" .Chart) */ -}}
{{- define "boathouse.image" -}}
{{- with .image -}}
{{ with .registry }}{{ . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* The operator's configuration file (its keys are those of boathouse.resources.config.OperatorConfig). */ -}}
{{- define "boathouse.config" -}}
{{- $task := dict
  "image" (include "boathouse.image" (dict "image" .Values.task.image "chart" .Chart))
  "imagePullPolicy" .Values.task.image.pullPolicy
  "imagePullSecrets" .Values.task.image.pullSecrets
  "scratchSize" .Values.task.scratchSize
  "ephemeralStorage" (.Values.task.ephemeralStorage | default dict)
  "imagePullTimeoutSeconds" .Values.task.imagePullTimeoutSeconds
  "startTimeoutSeconds" .Values.task.startTimeoutSeconds
  "missingObjectTimeoutSeconds" .Values.task.missingObjectTimeoutSeconds
  "maxInfrastructureFailures" .Values.task.maxInfrastructureFailures
  "notReadyTolerationSeconds" .Values.task.notReadyTolerationSeconds
-}}
{{- $spark := dict
  "image" (include "boathouse.image" (dict "image" .Values.spark.image "chart" .Chart))
  "imagePullSecrets" .Values.spark.image.pullSecrets
  "serviceAccount" .Values.spark.serviceAccount
  "uiService" .Values.spark.uiService
  "ephemeralStorage" (.Values.spark.ephemeralStorage | default dict)
  "missingObjectTimeoutSeconds" .Values.spark.missingObjectTimeoutSeconds
  "notReadyTolerationSeconds" .Values.spark.notReadyTolerationSeconds
-}}
{{- $hadoop := dict
  "image" (include "boathouse.image" (dict "image" .Values.hadoop.image "chart" .Chart))
  "imagePullSecrets" .Values.hadoop.image.pullSecrets
  "ephemeralStorage" (.Values.hadoop.ephemeralStorage | default dict)
  "partition" .Values.hadoop.partition
  "preferIpv4" .Values.hadoop.preferIPv4
-}}
{{- $kubelets := omit (dig "kubelets" dict (.Values.signals | default dict)) "caConfigMap" -}}
{{- if dig "kubelets" "caConfigMap" "name" "" (.Values.signals | default dict) }}
{{- $kubelets = set $kubelets "caFile" "/etc/boathouse-kubelets/ca.crt" }}
{{- end }}
{{- dict
  "namespace" .Release.Namespace
  "watchNamespaces" .Values.namespaces
  "queues" .Values.queues
  "defaultQueue" .Values.defaultQueue
  "namespaceQueues" .Values.namespaceQueues
  "profile" .Values.profile
  "shadowProfile" (.Values.shadowProfile | default "")
  "actuators" (.Values.actuators | default dict)
  "switchback" (.Values.switchback | default dict)
  "prediction" (.Values.prediction | default dict)
  "signals" (dict "kubelets" $kubelets)
  "autoscaling" (.Values.autoscaling | default dict)
  "pendingAhead" .Values.pendingAhead
  "tenantLimits" .Values.tenantLimits
  "task" $task
  "spark" $spark
  "hadoop" $hadoop
  "lease" .Values.lease
  "logLevel" .Values.log.level
  "logFormat" .Values.log.format
  | toPrettyJson -}}
{{- end }}

{{- /* The volume with the authority of the kubelets' certificates; empty if there is none. */ -}}
{{- define "boathouse.kubeletAuthority" -}}
{{- with dig "kubelets" "caConfigMap" dict (.Values.signals | default dict) }}
{{- if .name }}{{ dict "name" .name "optional" true "items" (list (dict "key" .key "path" "ca.crt")) | toJson }}{{ end }}
{{- end }}
{{- end }}

{{- /* Checks that the schema cannot express: contradictions that would fail the operator's start. */ -}}
{{- define "boathouse.validate" -}}
{{- $queues := list }}
{{- range .Values.queues }}
{{- if has .name $queues }}{{ fail (printf "queues: %q is there twice" .name) }}{{ end }}
{{- $queues = append $queues .name }}
{{- end }}
{{- $known := join ", " $queues }}
{{- if not (has .Values.defaultQueue $queues) }}
{{- fail (printf "defaultQueue is %q, which is not among the queues: %s" .Values.defaultQueue $known) }}
{{- end }}
{{- range $namespace, $queue := .Values.namespaceQueues }}
{{- if not (has $queue $queues) }}
{{- fail (printf "namespaceQueues.%s is %q, which is not among the queues: %s" $namespace $queue $known) }}
{{- end }}
{{- end }}
{{- include "boathouse.validateQueueNamespaces" . }}
{{- range .Values.spark.namespaces }}
{{- if and $.Values.namespaces (not (has . $.Values.namespaces)) }}
{{- fail (printf "spark.namespaces: Boathouse does not run in %s: add it to namespaces" .) }}
{{- end }}
{{- end }}
{{- include "boathouse.validateSignals" . }}
{{- with .Values.lease }}
{{- if not (and (gt (float64 .durationSeconds) (float64 .renewDeadlineSeconds)) (gt (float64 .renewDeadlineSeconds) (float64 .retryPeriodSeconds))) }}
{{- fail "lease: durationSeconds must be more than renewDeadlineSeconds, and that more than retryPeriodSeconds" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "boathouse.validateSignals" -}}
{{- $kubelets := dig "kubelets" dict (.Values.signals | default dict) }}
{{- $egress := .Values.networkPolicy.egress | default dict }}
{{- if and $kubelets.enabled (eq (not $kubelets.insecureSkipVerify) (empty $kubelets.caConfigMap.name)) }}
{{- fail "signals.kubelets: set either caConfigMap.name, a ConfigMap with the authority of the kubelets' certificates, or insecureSkipVerify: true to accept any certificate" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (dig "serviceMonitor" "enabled" false (.Values.metrics | default dict)) (empty .Values.networkPolicy.metricsFrom) }}
{{- fail "networkPolicy.metricsFrom is empty, so Prometheus cannot scrape what metrics.serviceMonitor names: list its pods, such as {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}, or set networkPolicy.enabled to false" }}
{{- end }}
{{- if and $egress.enabled (not .Values.networkPolicy.enabled) }}
{{- fail "networkPolicy.egress.enabled needs networkPolicy.enabled" }}
{{- end }}
{{- if and $egress.enabled (empty $egress.apiServer) }}
{{- fail "networkPolicy.egress.apiServer is empty: list the addresses of the API server, or the operator cannot connect to it" }}
{{- end }}
{{- if and $egress.enabled $kubelets.enabled (empty $egress.nodes) }}
{{- fail "networkPolicy.egress.nodes is empty: list the CIDRs of the nodes, or the operator cannot connect to their kubelets" }}
{{- end }}
{{- end }}

{{- /* Each namespace needs a default queue that accepts it; otherwise its jobs would have to name a queue. */ -}}
{{- define "boathouse.validateQueueNamespaces" -}}
{{- $values := .Values }}
{{- $accepted := dict }}
{{- range $values.queues }}
{{- $_ := set $accepted .name (.namespaces | default list) }}
{{- end }}
{{- range $namespace, $queue := $values.namespaceQueues }}
{{- $of := get $accepted $queue }}
{{- if and $of (not (has $namespace $of)) }}
{{- fail (printf "namespaceQueues.%s is %q, which does not accept the namespace: add %s to the queue's namespaces" $namespace $queue $namespace) }}
{{- end }}
{{- end }}
{{- $of := get $accepted $values.defaultQueue }}
{{- if and $of (not $values.namespaces) }}
{{- fail (printf "defaultQueue is %q, which accepts only %s: leave its namespaces empty, or name another default queue" $values.defaultQueue (join ", " $of)) }}
{{- end }}
{{- range $namespace := $values.namespaces }}
{{- if and $of (not (has $namespace $of)) (not (hasKey $values.namespaceQueues $namespace)) }}
{{- fail (printf "defaultQueue is %q, which does not accept the namespace %s: add it to the queue's namespaces, or give it another queue in namespaceQueues" $values.defaultQueue $namespace) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Labels of `helm test`, without the selector's: otherwise the Services would select the test pod. */ -}}
{{- define "boathouse.testLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: boathouse-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: boathouse
{{- end }}
