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
# The node for which a claim's volume is to be made: only that, see the policy boathouse-account-volumes.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [patch]
# Why a pod waits; and a smaller size for one that is not placed yet.
- apiGroups: [""]
  resources: [pods/status, pods/resize]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# A job's split plan, its files (whether they are there), the authorities that its tasks trust; a driver's properties.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
# Whether the account of a driver exists; not its tokens.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
# The UI of a Spark application: see the policy boathouse-account-services.
- apiGroups: [""]
  resources: [services]
  verbs: [get, create]
- apiGroups: [boathouse.dev]
  resources: [mrjobs, sparkapps]
  # delete: of jobs whose ttlSecondsAfterFinished is over. patch: of one finalizer, see the policy boathouse-account-jobs.
  verbs: [get, list, watch, patch, delete]
- apiGroups: [boathouse.dev]
  resources: [mrjobs/status, sparkapps/status]
  verbs: [patch]
{{- end }}
