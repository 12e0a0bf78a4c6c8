#!/usr/bin/env bash
# Checks, on a running cluster, the features that Stoker's tests rely on: native sidecars, node-local hostPath,
# inherited ownership (docs/adr/0002), faults and healing, and that `down` leaves nothing behind.
# usage: selftest.sh      starts two nodes, and stops them at the end; needs the image of `tools/images.sh s3`
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster.sh
image=localhost/stoker-e2e-s3:${STOKER_TAG:-dev}
passed=0 failed=0

check() { # FACT COMMAND...
  local fact=$1
  shift
  if "$@" >/dev/null 2>&1; then
    passed=$((passed + 1))
    echo "ok      $fact"
  else
    failed=$((failed + 1))
    echo "FAILED  $fact"
  fi
}
eventually() { # COMMAND...: within 40 seconds
  local end=$((SECONDS + 40))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
phase_is() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
log_has() { kubectl logs "$1" -c "$2" | grep -q -- "$3"; }
mode_of() { [ "$("$cluster" shell "$1" stat -c '%a %u:%g' "$2")" = "$3" ]; } # N PATH WANT
node_is() { [ "$(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }

reaches_other_node() { "$cluster" shell 1 timeout 2 bash -c 'echo >/dev/tcp/10.240.0.12/10250'; }
cut_off() { ! reaches_other_node; }

prepare_pod() { # NODE
  cat <<Y
apiVersion: v1
kind: Pod
metadata: {name: prepare-$1}
spec:
  nodeName: $1
  restartPolicy: Never
  containers:
    - name: prepare
      image: $image
      command: [bash, -c, 'find /pool -maxdepth 2 -type d -user 0 -exec chgrp 65532 {} + -exec chmod 2770 {} +']
      securityContext: {runAsUser: 0, runAsGroup: 65532, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: pool, mountPath: /pool}]
  volumes:
    - {name: pool, hostPath: {path: /var/lib/stoker, type: DirectoryOrCreate}}
Y
}

job_pod() { # NAME NODE SIDECAR_SCRIPT TRAINER_SCRIPT
  cat <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: $2
  restartPolicy: Never
  terminationGracePeriodSeconds: 2
  securityContext: {supplementalGroups: [65532], seccompProfile: {type: RuntimeDefault}}
  initContainers:
    - name: sidecar
      image: $image
      restartPolicy: Always
      command: [bash, -c, '$3']
      startupProbe: {exec: {command: [test, -e, /run/stoker/ready]}, periodSeconds: 1}
      securityContext:
        {runAsUser: 65532, runAsGroup: 65532, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts:
        - {name: pool, mountPath: /node, subPath: team-a/digits}
        - {name: run, mountPath: /run/stoker}
  containers:
    - name: trainer
      image: $image
      command: [bash, -c, '$4']
      securityContext: {runAsUser: 1000}
      volumeMounts:
        - {name: pool, mountPath: /node, subPath: team-a/digits, readOnly: true}
        - {name: run, mountPath: /run/stoker}
  volumes:
    - {name: pool, hostPath: {path: /var/lib/stoker, type: DirectoryOrCreate}}
    - {name: run, emptyDir: {}}
Y
}
holder='trap "echo stopped; exit" TERM; umask 007; echo sample >/node/0.seg; exec 9>>/node/lock;
  flock -n 9 || echo busy; touch /run/stoker/ready; flock 9 & wait $!; echo leader; touch /run/stoker/leads;
  sleep infinity & wait'
reader='cat /node/0.seg; echo x >/node/0.seg || echo refused; until [ -e /run/stoker/leads ]; do sleep 0.1; done'

test_node_directory() {
  job_pod early node-1 'touch /run/stoker/ready; mkdir /node/x || echo denied; sleep infinity' true |
    kubectl apply -f -
  check "without preparation uid 65532 may not write" eventually log_has early sidecar denied
  kubectl delete pod early --grace-period=1
  prepare_pod node-1 | kubectl apply -f -
  check "the prepare pod needs no capability" eventually phase_is prepare-node-1 Succeeded
  check "the prepare pod repairs the owner of directories that the kubelet made" mode_of 1 /var/lib/stoker/team-a/digits 2770\ 0:65532
  "$cluster" shell 1 rm -r /var/lib/stoker/team-a

  job_pod a node-1 "$holder" "$reader; sleep 600" | kubectl apply -f -
  check "the sidecar writes and leads" eventually log_has a sidecar leader
  check "the kubelet hands the group down" mode_of 1 /var/lib/stoker/team-a/digits 2770\ 0:65532
  check "a trainer of another uid reads" eventually log_has a trainer sample
  check "a trainer of another uid may not write" eventually log_has a trainer refused
  job_pod b node-1 "$holder" "$reader" | kubectl apply -f -
  check "a second pod of the node finds the lock taken" eventually log_has b sidecar busy
  check "the trainer starts only when its sidecar has" eventually log_has b trainer sample
  kubectl delete pod a --force --grace-period=0
  check "another sidecar leads after the leader's pod was force-deleted" eventually log_has b sidecar leader
  check "a sidecar ends after its trainer" eventually log_has b sidecar stopped
  check "the pod succeeds after its sidecar has ended" eventually phase_is b Succeeded
  check "the other node has a directory of its own" bash -c "! '$cluster' shell 2 test -e /var/lib/stoker"
  check "the host has no such directory" bash -c '! test -e /var/lib/stoker'
}

test_faults() {
  "$cluster" node-kill 2
  check "a node without power is NotReady" eventually node_is node-2 Unknown
  "$cluster" node-start 2
  check "a node whose power returns is Ready" node_is node-2 True
  "$cluster" apiserver stop
  check "the API server is gone" bash -c '! kubectl get --raw /readyz --request-timeout=1s'
  "$cluster" apiserver start
  check "the API server comes back with its objects" kubectl get pod b
  check "nodes reach each other" reaches_other_node
  "$cluster" drop 1 2
  check "dropped packets cut them apart" cut_off
  "$cluster" disk 2 8m /var/lib/stoker
  check "a small disk fills up" bash -c "! '$cluster' shell 2 dd if=/dev/zero of=/var/lib/stoker/x bs=1M count=9"
  "$cluster" heal
  check "heal restores the network" eventually reaches_other_node
  check "heal removes the small disk" bash -c "! '$cluster' shell 2 grep -q stoker-fault /proc/self/mounts"
}

"$cluster" down
before=$("$cluster" traces)
"$cluster" up 2
eval "$("$cluster" env)"
"$cluster" load-image "$image"
test_node_directory
test_faults
"$cluster" down
after=$("$cluster" traces)
diff <(echo "$before") <(echo "$after") || true # prints the differences that make the check fail
check "down leaves nothing behind" test "$before" = "$after"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
