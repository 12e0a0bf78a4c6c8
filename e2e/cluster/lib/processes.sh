# shellcheck shell=bash
# Starts, finds and stops the cluster's processes. Sourced, never run.
#
# Every process carries OWNED in its environment. A pid file counts only if its process has this mark, so a reused
# pid is never touched; and `down` finds all processes by the mark, even when every pid file is lost.

OWNED=_STOKER_CLUSTER=$STATE

is_ours() { [ -n "${1:-}" ] && grep -qzxF "$OWNED" "/proc/$1/environ" 2>/dev/null; } # false for a zombie
owned_pids() { # grep fails if there is no process, or if one ends meanwhile
  { grep -lzxF "$OWNED" /proc/[0-9]*/environ 2>/dev/null || [ $? -le 2 ]; } | cut -d/ -f3
}
pid_of() { # NAME
  local pid
  pid=$(cat "$STATE/run/$1.pid" 2>/dev/null) && is_ours "$pid" && echo "$pid"
}
child_of() { # PID
  local pid
  for pid in $(pgrep -P "$1"); do is_ours "$pid" && { echo "$pid"; return; }; done
  return 1
}

spawn() { # NAME COMMAND...: a daemon with a log and a pid file
  local name=$1
  shift
  env "$OWNED" setsid "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$STATE/run/$name.pid"
}
ensure() { pid_of "$1" >/dev/null || spawn "$@"; } # NAME COMMAND...

stop_all() {
  local try pids
  for try in 1 2 3 4 5; do # a round can miss a process that is being forked
    mapfile -t pids < <(owned_pids)
    [ ${#pids[@]} -gt 0 ] || return 0
    kill -9 "${pids[@]}" 2>/dev/null || sleep 0.1 # kill fails if one has ended already
    sleep "0.$try"
  done
}
is_gone() { ! is_ours "$1"; }
none_left() { [ -z "$(owned_pids)" ]; }

resident_memory() { awk '/^VmRSS/ { printf "%d MiB", $2 / 1024 }' "/proc/$1/status" 2>/dev/null; }
total_memory() { # proportional set size: a page shared by two processes counts once
  local pid
  for pid in $(owned_pids); do cat "/proc/$pid/smaps_rollup" 2>/dev/null || continue; done |
    awk '/^Pss:/ { sum += $2 } END { printf "%d MiB\n", sum / 1024 }'
}
