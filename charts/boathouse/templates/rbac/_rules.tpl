{{- /* Rules in namespaces where Boathouse runs jobs. Admission policies restrict each further: see templates/policies. */ -}}
{{- define "boathouse.tenantRules" -}}
# Creates a pod for each attempt; deletes the pods of a deleted job. patch: ends a pod by a deadline whose own container
# has ended while others run on; see the policy boathouse-account.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, patch]
# Binds pods of other users that name this scheduler, and task pods that were created without a node.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# Creates the claims of Hadoop clusters' nodes: see the policy boathouse-account-claims. Of any claim it writes only the
# annotation with the node for the claim's volume: see the policy boathouse-account-volumes.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, patch]
# Writes why a pod is pending, a smaller size for a pod without a node, and the CPU of tasks that are suspended.
- apiGroups: [""]
  resources: [pods/status, pods/resize]
  verbs: [patch]
# list: which Secret or ConfigMap a kubelet lacks to mount the volumes of a driver; only events say so.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, create, patch]
  # Split plans of jobs, files of jobs (whether they exist), the certificate authorities that tasks trust, and drivers'
  # properties.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
# Whether the account of a driver exists; not its tokens.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
# The UI of a Spark application, and the host names of a Hadoop cluster's nodes: see the policy boathouse-account-services.
- apiGroups: [""]
  resources: [services]
  verbs: [get, create]
# Who reaches the ports of a Hadoop cluster's master acts as any of its users: see the policy boathouse-account-network.
# patch, delete: of a cluster whose spec.networkPolicy changes.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch, delete]
- apiGroups: [boathouse.dev]
  resources: [mrclusters, mrjobs, sparkapps]
  # delete: jobs whose ttlSecondsAfterFinished has passed. patch: one finalizer, see the policy boathouse-account-jobs.
  verbs: [get, list, watch, patch, delete]
- apiGroups: [boathouse.dev]
  resources: [mrclusters/status, mrjobs/status, sparkapps/status]
  verbs: [patch]
{{- end }}
