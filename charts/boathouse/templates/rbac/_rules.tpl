{{- /* What Boathouse may do where it runs jobs. Policies narrow each further: see templates/policies. */ -}}
{{- define "boathouse.tenantRules" -}}
# One pod an attempt; a job that is cancelled takes its pods with it.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete]
# Placing pods of others that name this scheduler, and those kept pending ahead.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# The split plan of a job, and the progress endpoint's authority.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, update]
- apiGroups: [boathouse.dev]
  resources: [mrjobs]
  verbs: [get, list, watch]
- apiGroups: [boathouse.dev]
  resources: [mrjobs/status]
  verbs: [patch]
{{- end }}
