#!/bin/sh
# client.sh CLASS [ARGUMENT...]: submit a job when the container beside this one has prepared it and has leave to submit.
#
# That container writes the settings to WORK/conf, and WORK/go last; or WORK/stop, which says why there is no submission.
set -euf
work=${BOATHOUSE_WORK:-/work}
trap 'exit 143' TERM INT # process 1 has no default action
until [ -e "$work/go" ]; do
  if [ -e "$work/stop" ]; then
    cat "$work/stop" >"${BOATHOUSE_TERMINATION_LOG:-/dev/termination-log}"
    exit 1
  fi
  sleep 1
done
trap - TERM INT
# shellcheck disable=SC2086 # several options
exec "$JAVA_HOME/bin/java" $BOATHOUSE_JAVA_OPTS -cp "$work/conf:$BOATHOUSE_CLASSPATH" "$@"
