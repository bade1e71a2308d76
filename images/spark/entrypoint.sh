#!/bin/bash
# Spark's contract with an image: `driver ARGS` runs spark-submit in client mode, `executor` runs an executor backend from
# the variables that the driver sets in the pod, and any other words are a command. tini reaps what the JVM leaves behind.
set -euo pipefail

# The JVM and Hadoop need a name for the user. libnss-extrausers reads this file beside /etc/passwd.
if ! getent passwd "$(id -u)" >/dev/null; then
  echo "${SPARK_USER:-spark}:x:$(id -u):$(id -g)::$HOME:/usr/sbin/nologin" >"$EXTRA_PASSWD" ||
    echo "entrypoint.sh: cannot name user $(id -u) in $EXTRA_PASSWD: mount a writable /tmp" >&2
fi

class_path() {
  local parts=("${SPARK_CONF_DIR:-$SPARK_HOME/conf}" "${HADOOP_CONF_DIR:-}" "${SPARK_CLASSPATH:-}" "$SPARK_HOME/jars/*"
    "${SPARK_EXTRA_CLASSPATH:-}" "$PWD" "${SPARK_DIST_CLASSPATH:-}")
  local joined=""
  for part in "${parts[@]}"; do
    [[ -z $part ]] || joined+="${joined:+:}$part"
  done
  printf '%s' "$joined"
}

# SPARK_JAVA_OPT_0, _1, ... in the order of their numbers; an option may hold any character.
java_options() {
  local name
  while read -r name; do
    printf '%s\0' "${!name}"
  done < <(compgen -e SPARK_JAVA_OPT_ | sort -t_ -k4 -n)
}

case ${1:-} in
  driver)
    shift
    command=("$SPARK_HOME/bin/spark-submit" --deploy-mode client
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@")
    ;;
  executor)
    mapfile -d '' -t options < <(java_options)
    command=("${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY"
      -cp "$(class_path)" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES"
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP"
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME")
    ;;
  *)
    command=("$@")
    ;;
esac
exec tini -s -- "${command[@]}"
