#!/bin/sh
# refresh.sh FOLDER LABEL: carry out the requests of the agent with the commands of this image.
#
# REQUEST.want has a number. REQUEST.done gets the number and the exit status of the command, as in `7 0`.
set -uf
folder=$1
label=$2
declared=
trap 'exit 0' TERM INT # process 1 has no default action

run() {
  # shellcheck disable=SC2086 # several options
  timeout 60 "$JAVA_HOME/bin/java" $BOATHOUSE_JAVA_OPTS -cp "$HADOOP_CONF_DIR:$BOATHOUSE_CLASSPATH" "$@"
}

rmadmin() { run org.apache.hadoop.yarn.client.cli.RMAdminCLI "$@"; }

# The ResourceManager keeps labels on its volume, so one declaration is enough. It refuses a label that is not declared.
declare_label() {
  [ -n "$declared" ] || { rmadmin -addToClusterNodeLabels "$label(exclusive=false)" && declared=1; }
}

carry_out() {
  case $1 in
    hdfs) run org.apache.hadoop.hdfs.tools.DFSAdmin -refreshNodes ;;
    yarn) declare_label && rmadmin -refreshNodes -g -server ;;
  esac
}

number() { cut -d ' ' -f 1 "$1" 2>/dev/null; }

while :; do
  for request in hdfs yarn; do
    want=$(number "$folder/$request.want")
    [ -n "$want" ] && [ "$want" != "$(number "$folder/$request.done")" ] || continue
    carry_out "$request"
    printf '%s %s\n' "$want" "$?" >"$folder/$request.$$"
    mv "$folder/$request.$$" "$folder/$request.done"
  done
  sleep 1
done
