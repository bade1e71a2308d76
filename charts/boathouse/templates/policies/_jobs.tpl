{{- define "boathouse.matchJobs" -}}
resourceRules:
  - apiGroups: [boathouse.dev]
    apiVersions: ["*"]
    operations: [CREATE, UPDATE]
    resources: [mrclusters, mrjobs, sparkapps]
{{- end }}

{{- /* Accounts of `rights.exempt` are exempt from the check: controllers that handle the jobs of others. */ -}}
{{- define "boathouse.exempt" -}}
{{- with .Values.rights.exempt -}}
matchConditions:
  - name: not-exempt
    expression: "!(request.userInfo.username in {{ include "boathouse.celList" . }})"
{{- end }}
{{- end }}

{{- define "boathouse.mayCreatePods" -}}
name: mayCreatePods
expression: authorizer.group("").resource("pods").namespace(request.namespace).check("create").allowed()
{{- end }}

{{- /* The service accounts of a spec, and whether the request sets or changes them. */ -}}
{{- define "boathouse.accounts" -}}
- name: isApp
  expression: request.resource.resource == "sparkapps"
- name: account # of all pods, of a SparkApp of its executors
  expression: object.spec.?serviceAccountName.orValue("default")
- name: newAccount
  expression: request.operation == "CREATE" || variables.account != oldObject.spec.?serviceAccountName.orValue("default")
- name: driver # the account of a SparkApp's driver
  expression: dyn(object.spec).?driver.?serviceAccountName.orValue({{ .Values.spark.serviceAccount | quote }})
- name: newDriver
  expression: request.operation == "CREATE" || variables.driver != dyn(oldObject.spec).?driver.?serviceAccountName.orValue({{ .Values.spark.serviceAccount | quote }})
{{- end }}

{{- /* The spec of either kind before the update; empty on create. */ -}}
{{- define "boathouse.oldSpec" -}}
request.operation == "CREATE" ? dyn({}) : dyn(oldObject.spec)
{{- end }}

{{- /*
A policy by which an MRCluster, MRJob or SparkApp names only objects of one kind that its author may read.
Argument: (dict "root" . "name" NAME "kind" KIND "resource" PLURAL "names" EXPRESSION), with the spec as `s` in EXPRESSION.

An authorizer check costs 350,000. An expression may cost 1,000,000 and a policy's expressions together 10,000,000, so
each name has an expression of its own, and each kind a policy of its own.
*/ -}}
{{- define "boathouse.readsPolicy" -}}
{{- $most := 20 -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels: {{- include "boathouse.labels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints: {{- include "boathouse.matchJobs" .root | nindent 4 }}
  {{- include "boathouse.exempt" .root | nindent 2 }}
  variables:
    - name: old
      expression: >-
        [{{ include "boathouse.oldSpec" .root }}].map(s, {{ .names }})[0]
    - name: names # that this request adds
      expression: >-
        [dyn(object.spec)].map(s, {{ .names }})[0].filter(name, name != "" && !(name in variables.old)).distinct()
    - name: mayReadAll
      expression: >-
        variables.names.size() == 0 || authorizer.group("").resource("pods").namespace(request.namespace).check("create").allowed() ||
        authorizer.group("").resource({{ .resource | quote }}).namespace(request.namespace).check("get").allowed()
  validations:
    - expression: variables.mayReadAll || variables.names.size() <= {{ $most }}
      messageExpression: >-
        "spec names " + string(variables.names.size()) + " {{ .kind }}s; who may neither create pods nor read all {{ .kind }}s of this namespace may name {{ $most }}: " +
        "put their keys into fewer {{ .kind }}s, or ask the administrator for the role edit"
      message: "spec names more than {{ $most }} {{ .kind }}s: put their keys into fewer {{ .kind }}s, or ask the administrator for the role edit"
      reason: Forbidden
    {{- range $i := until $most }}
    - expression: >-
        variables.mayReadAll || variables.names.size() <= {{ $i }} || variables.names.size() > {{ $most }} ||
        authorizer.group("").resource({{ $.resource | quote }}).namespace(request.namespace).name(variables.names[{{ $i }}]).check("get").allowed()
      messageExpression: >-
        "spec names the {{ $.kind }} " + variables.names[{{ $i }}] + ", and you may neither create pods nor get that {{ $.kind }} in this namespace: " +
        "name another, or ask the administrator for one of the two rights"
      message: "spec names a {{ $.kind }} that you may not get: name another, or ask the administrator for the right"
      reason: Forbidden
    {{- end }}
{{ include "boathouse.policyBinding" (dict "root" .root "name" .name) }}
{{- end }}

{{- /* A CEL list of strings. */ -}}
{{- define "boathouse.celList" -}}
{{ . | toJson | replace "\"" "'" }}
{{- end }}

{{- /* Whether Boathouse runs nothing in the request's namespace, for any user. */ -}}
{{- define "boathouse.closedNamespace" -}}
request.namespace in ['kube-system', '{{ .Release.Namespace }}'] || namespaceObject.metadata.?labels['boathouse.dev/enabled'].orValue('') == 'false'
{{- end }}

{{- /*
The queue of a job or pod, as the operator finds it (OperatorConfig.queue_for): the one that it names, else of its
namespace's label, else of the value namespaceQueues, else the default. Argument: (dict "root" . "named" EXPRESSION)
*/ -}}
{{- define "boathouse.queueOf" -}}
>-
        {{ .named }} != "" ? {{ .named }} :
        namespaceObject.metadata.?labels["boathouse.dev/queue"].orValue("") != "" ? namespaceObject.metadata.labels["boathouse.dev/queue"] :
        {{- range $namespace, $queue := .root.Values.namespaceQueues }}
        request.namespace == {{ $namespace | quote }} ? {{ $queue | quote }} :
        {{- end }}
        {{ .root.Values.defaultQueue | quote }}
{{- end }}

{{- /*
Validations by which `variables.queue` exists and accepts the namespace and `variables.class`.
Argument: (dict "root" . "when" CONDITION "field" FIELD "classField" FIELD)
*/ -}}
{{- define "boathouse.queueRules" -}}
{{- $names := list }}
{{- range .root.Values.queues }}{{ $names = append $names .name }}{{ end -}}
- expression: "!{{ .when }} || variables.queue in {{ include "boathouse.celList" $names }}"
  messageExpression: >-
    "{{ .field }}: the queue " + variables.queue + " does not exist; there are {{ join ", " $names }}" +
    (variables.named == "" ? ": ask the administrator to correct the namespace's label boathouse.dev/queue, or name a queue" : "")
  message: "{{ .field }}: the queue does not exist; there are {{ join ", " $names }}"
  reason: Forbidden
{{- range $queue := .root.Values.queues }}
{{- with $queue.namespaces }}
- expression: "!{{ $.when }} || variables.queue != '{{ $queue.name }}' || request.namespace in {{ include "boathouse.celList" . }}"
  message: "{{ $.field }}: the queue {{ $queue.name }} does not accept this namespace; name another queue, or ask the administrator to add the namespace to the queue's namespaces in the chart's value queues"
  reason: Forbidden
{{- end }}
{{- with $queue.priorityClasses }}
- expression: "!{{ $.when }} || variables.queue != '{{ $queue.name }}' || variables.class == '' || variables.class in {{ include "boathouse.celList" . }}"
  message: "{{ $.classField }}: the queue {{ $queue.name }} accepts the PriorityClasses {{ join ", " . }} only; name one of them, remove the field, or name another queue"
  reason: Forbidden
{{- end }}
{{- end }}
{{- end }}
