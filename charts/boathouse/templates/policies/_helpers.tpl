{{- /* Service accounts of Spark drivers: nothing else runs as one, and the policies boathouse-driver* hold for all. */ -}}
{{- define "boathouse.isDriverAccount" -}}
{{ . }}.matches('^boathouse-spark(-.*)?$')
{{- end }}

{{- define "boathouse.byDriver" -}}
request.userInfo.username.matches('^system:serviceaccount:[^:]+:boathouse-spark(-.*)?$')
{{- end }}

{{- /* A binding of the policy of the same name, for all that it matches. */ -}}
{{- define "boathouse.policyBinding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels: {{- include "boathouse.labels" .root | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
  {{- with .paramRef }}
  paramRef: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
