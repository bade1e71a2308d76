{{- /*
Validations by which a new pod satisfies the Pod Security Standard `restricted` of Kubernetes 1.36, check by check,
whatever its namespace enforces. They need the variables of boathouse.podVariables. Argument: how a message begins.

The standard permits more to Windows pods and to pods in a user namespace; these rules do not.
*/ -}}
{{- define "boathouse.restrictedRules" -}}
- expression: >-
    !object.spec.?securityContext.?windowsOptions.?hostProcess.orValue(false) &&
    variables.containers.all(c, !c.?securityContext.?windowsOptions.?hostProcess.orValue(false))
  message: "{{ . }} no pods with windowsOptions.hostProcess"
  reason: Forbidden
- expression: "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"
  message: "{{ . }} no pods with hostNetwork, hostPID or hostIPC"
  reason: Forbidden
- expression: variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))
  message: "{{ . }} no pods with privileged containers"
  reason: Forbidden
- expression: >-
    variables.containers.all(c, c.?securityContext.?capabilities.?drop.orValue([]).exists(x, x == "ALL") &&
      c.?securityContext.?capabilities.?add.orValue([]).all(x, x == "NET_BIND_SERVICE"))
  message: "{{ . }} pods whose containers drop the capabilities ALL and add none but NET_BIND_SERVICE"
  reason: Forbidden
- expression: >-
    variables.volumes.all(v, has(v.configMap) || has(v.csi) || has(v.downwardAPI) || has(v.emptyDir) || has(v.ephemeral) ||
      has(v.image) || has(v.persistentVolumeClaim) || has(v.projected) || has(v.secret))
  message: "{{ . }} pods with volumes of the types configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected and secret only"
  reason: Forbidden
- expression: variables.containers.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))
  message: "{{ . }} no pods with a hostPort"
  reason: Forbidden
- expression: >-
    variables.containers.all(c,
      [c.?livenessProbe, c.?readinessProbe, c.?startupProbe].all(p, p.?httpGet.?host.orValue("") == "" && p.?tcpSocket.?host.orValue("") == "") &&
      [c.?lifecycle.?postStart, c.?lifecycle.?preStop].all(h, h.?httpGet.?host.orValue("") == "" && h.?tcpSocket.?host.orValue("") == ""))
  message: "{{ . }} no pods with a host in probes or lifecycle handlers"
  reason: Forbidden
- expression: >-
    object.spec.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"] &&
    variables.containers.all(c, c.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"]) &&
    object.metadata.?annotations.orValue({}).all(k, !k.startsWith("container.apparmor.security.beta.kubernetes.io/") ||
      object.metadata.annotations[k] in ["", "runtime/default"] || object.metadata.annotations[k].startsWith("localhost/"))
  message: "{{ . }} pods with the AppArmor profiles RuntimeDefault and Localhost only"
  reason: Forbidden
- expression: >-
    [object.spec.?securityContext.?seLinuxOptions].all(o, o.?user.orValue("") == "" && o.?role.orValue("") == "" &&
      o.?type.orValue("") in ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"]) &&
    variables.containers.all(c, c.?securityContext.?seLinuxOptions.?user.orValue("") == "" && c.?securityContext.?seLinuxOptions.?role.orValue("") == "" &&
      c.?securityContext.?seLinuxOptions.?type.orValue("") in ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"])
  message: "{{ . }} no pods with seLinuxOptions.user, seLinuxOptions.role or another seLinuxOptions.type than a container's"
  reason: Forbidden
- expression: variables.containers.all(c, c.?securityContext.?procMount.orValue("Default") == "Default")
  message: "{{ . }} pods with the procMount Default only"
  reason: Forbidden
- expression: >-
    object.spec.?securityContext.?sysctls.orValue([]).all(s, s.name in ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
      "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
      "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem",
      "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"])
  message: "{{ . }} pods with safe sysctls only"
  reason: Forbidden
- expression: "variables.containers.all(c, !c.?securityContext.?allowPrivilegeEscalation.orValue(true))"
  message: "{{ . }} pods whose containers have allowPrivilegeEscalation false"
  reason: Forbidden
- expression: >-
    object.spec.?securityContext.?runAsNonRoot.orValue(true) &&
    variables.containers.all(c, c.?securityContext.?runAsNonRoot.orValue(object.spec.?securityContext.?runAsNonRoot.orValue(false)))
  message: "{{ . }} pods with runAsNonRoot true"
  reason: Forbidden
- expression: >-
    object.spec.?securityContext.?runAsUser.orValue(1) != 0 && variables.containers.all(c, c.?securityContext.?runAsUser.orValue(1) != 0)
  message: "{{ . }} no pods with runAsUser 0"
  reason: Forbidden
- expression: >-
    object.spec.?securityContext.?seccompProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"] &&
    variables.containers.all(c, c.?securityContext.?seccompProfile.?type.orValue(
      object.spec.?securityContext.?seccompProfile.?type.orValue("")) in ["RuntimeDefault", "Localhost"])
  message: "{{ . }} pods with the seccomp profiles RuntimeDefault and Localhost only"
  reason: Forbidden
- expression: object.spec.?ephemeralContainers.orValue([]).size() == 0
  message: "{{ . }} no pods with ephemeral containers"
  reason: Forbidden
{{- end }}

{{- define "boathouse.podVariables" -}}
- name: containers
  expression: object.spec.containers + object.spec.?initContainers.orValue([])
- name: volumes
  expression: object.spec.?volumes.orValue([])
- name: sources # of projected volumes
  expression: variables.volumes.map(v, v.?projected.?sources.orValue([])).flatten()
- name: account
  expression: object.spec.?serviceAccountName.orValue("default")
{{- end }}

{{- /* Whether the namespace's administrator has bound the account of a pod to boathouse-run-as or boathouse-spark-driver. */ -}}
{{- define "boathouse.mayRunAs" -}}
authorizer.serviceAccount(request.namespace, {{ . }}).group("boathouse.dev").resource("accounts").namespace(request.namespace).name({{ . }}).check("use").allowed()
{{- end }}
