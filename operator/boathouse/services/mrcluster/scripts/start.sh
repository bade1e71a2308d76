#!/bin/sh
# start.sh CLASS: prepare what a daemon of Hadoop needs, and become its JVM.
#
# The kubelet restarts a container that fails. The operator reads why from the termination message, `REASON: text`.
set -euf # -f: the * of a classpath is for Java
trap 'exit 143' TERM INT # process 1 has no default action; the JVM has its own
tmp=${BOATHOUSE_TMP:-/tmp}
class=$1
classpath=$HADOOP_CONF_DIR:$BOATHOUSE_CLASSPATH
name_node=org.apache.hadoop.hdfs.server.namenode.NameNode

fail() { # STATUS REASON TEXT
  printf '%s: %s\n' "$2" "$3" >&2
  printf '%s: %s\n' "$2" "$3" >"${BOATHOUSE_TERMINATION_LOG:-/dev/termination-log}"
  exit "$1"
}

# NodeManagers register under the name that the kubelet writes to /etc/hosts, with the domain of the cluster. DataNodes
# must have the same one: otherwise YARN finds no block on its nodes.
full_name() { # NAME
  while read -r _ name _; do
    case $name in "$1".*) printf '%s\n' "$name" && return ;; esac
  done <"${BOATHOUSE_HOSTS_FILE:-/etc/hosts}"
  printf '%s\n' "$1"
}

# Daemons end if they cannot resolve their own name, or register under a name that others cannot resolve. Hadoop asks DNS
# alone, which may have no address yet, or that of the pod that had the name before.
resolves() { # NAME [ADDRESS]
  addresses=$(getent -s dns ahosts "$1" | cut -d ' ' -f 1) || return 1
  [ -n "$addresses" ] || return 1
  [ -z "${2:-}" ] || printf '%s\n' "$addresses" | grep -qxF "$2"
}

wait_for() { # NAME [ADDRESS]
  left=${BOATHOUSE_RESOLVE_SECONDS:-120}
  until resolves "$@"; do
    [ "$left" -gt 0 ] || fail 1 NameNotResolved "DNS has no address ${2:-} of $1: check the DNS of the cluster"
    left=$((left - 1))
    sleep 1
  done
}

# The exclude files must exist: without them the NameNode ends, and the ResourceManager ignores them until it restarts.
# A link does not replace a file that the agent has written meanwhile.
make_exclude_file() {
  [ -e "$1" ] && return
  case $1 in *.xml) text='<?xml version="1.0"?><hosts></hosts>' ;; *) text= ;; esac
  printf '%s\n' "$text" >"$1.$$"
  ln "$1.$$" "$1" || [ -e "$1" ]
  rm "$1.$$"
}

# A file system is formatted once in the life of a cluster. The format becomes visible with the rename, so an interrupted
# one starts again. rmdir fails if the folder has anything in it.
format() {
  rm -rf "$1.new"
  # shellcheck disable=SC2086 # several options
  "$JAVA_HOME/bin/java" $BOATHOUSE_JAVA_OPTS -cp "$classpath" "$name_node" \
    -D "dfs.namenode.name.dir=file://$1.new" \
    -format -nonInteractive -clusterid "$BOATHOUSE_CLUSTER_ID"
  [ ! -d "$1" ] || rmdir "$1"
  mv "$1.new" "$1"
}

prepare_name_folder() {
  version=$1/current/VERSION
  if [ ! -f "$version" ]; then
    [ "${BOATHOUSE_FORMAT:-}" = 1 ] && [ ! -e "$tmp/formatted" ] ||
      fail 78 NameVolumeEmpty "the volume of the master has no file system of HDFS: restore $1, or recreate the cluster"
    format "$1"
  fi
  : >"$tmp/formatted" # in this pod: its variable BOATHOUSE_FORMAT does not change
  grep -qxF "clusterID=$BOATHOUSE_CLUSTER_ID" "$version" ||
    fail 78 ForeignCluster "the volume of the master has another cluster's file system: $(grep clusterID= "$version")"
}

BOATHOUSE_FQDN=$(full_name "$BOATHOUSE_FQDN")
export BOATHOUSE_FQDN # the settings read it
wait_for "$BOATHOUSE_FQDN" "$BOATHOUSE_POD_IP"
wait_for "$BOATHOUSE_MASTER"
[ -z "${BOATHOUSE_EXCLUDE_FILE:-}" ] || make_exclude_file "$BOATHOUSE_EXCLUDE_FILE"
[ "$class" != "$name_node" ] || prepare_name_folder "$BOATHOUSE_NAME_FOLDER"

# Processes of containers outlive their parents: as process 1 the JVM would not reap them.
init=$(command -v tini) || init=
# shellcheck disable=SC2086
exec ${init:+"$init" --} "$JAVA_HOME/bin/java" $BOATHOUSE_JAVA_OPTS -cp "$classpath" "$class"
