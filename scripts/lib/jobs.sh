# Jobs of a test run: commands with a log, a time limit and a result. Sourced; `work` names the folder of the run's files.
#
# A result is a line `lane|tier|name|outcome|seconds|passed|failed|ignored` in $work/results. Outcomes are ok, FAILED and
# NOT RUN: a job that ended well and said that it did not run something has not run.

# Seconds until the run must have ended.
left() { echo $((deadline - EPOCHSECONDS)); }

# The file of a job, without its ending.
file_of() { echo "$logs/${1//[:\/ ]/-}"; } # name

# Adds when each line of standard input came.
stamp() {
  local LC_ALL=C line
  while IFS= read -r line; do printf '%s %s\n' "$EPOCHREALTIME" "$line"; done
}

# How much a lane gives way to the others: what waits for the clock comes first, lint fills the gaps.
niceness() { # lane
  case "$1" in
    cpu) echo 5 ;;
    lint) echo 10 ;;
    *) echo 0 ;;
  esac
}

# Runs a command within what is left of the run, and within 50 minutes (a machine with other work on it may need them); its output goes to its log, its result to the results.
job() { # lane tier name folder command…
  local lane=$1 tier=$2 name=$3 folder=$4 file pid code begin=$EPOCHSECONDS limit
  shift 4
  file=$(file_of "$name")
  limit=$(left)
  [ "$limit" -lt "${job_limit:-3000}" ] || limit=${job_limit:-3000}
  if [ "$limit" -le 0 ]; then
    echo "$name: did not begin: the run's ${minutes} minutes are over" >"$file.log"
    result "$lane" "$tier" "$name" FAILED 0 "$file.log"
    return 1
  fi
  (cd "$folder" && exec nice -n "$(niceness "$lane")" timeout -k 20 "$limit" "$@") >"$file.out" 2>"$file.err" </dev/null &
  pid=$!
  echo "$pid" >"$work/pids/$pid"
  # By file and not by pipe: a process that outlives its test would keep a pipe open, and the run waiting.
  tail -n +1 -s 0.2 --pid="$pid" -f "$file.out" 2>/dev/null | stamp >"$file.times" &
  local stamping=$!
  wait "$pid"
  code=$?
  rm -f "$work/pids/$pid"
  wait "$stamping" 2>/dev/null
  cat "$file.out" "$file.err" >"$file.log"
  rm -f "$file.out" "$file.err"
  judge "$lane" "$tier" "$name" "$code" $((EPOCHSECONDS - begin)) "$file.log"
}

# Gives a job its outcome by its exit code and by what it says.
judge() { # lane tier name code seconds log
  local outcome=ok line
  [ "$4" = 124 ] && echo "$3: stopped after $5 s, with $(left) s left of the run's $minutes minutes" >>"$6"
  # Exit code 3 says that it cannot run here, together with why.
  if [ "$4" != 0 ] && ! { [ "$4" = 3 ] && grep -q 'NOT RUN' "$6"; }; then
    outcome=FAILED
  elif grep -q 'NOT RUN' "$6"; then
    outcome="NOT RUN"
    while IFS= read -r line; do is_required "$(need_of "$line")" && outcome=FAILED; done < <(grep 'NOT RUN' "$6")
  fi
  result "$1" "$2" "$3" "$outcome" "$5" "$6"
  [ "$outcome" != FAILED ]
}

# Writes a result, and shows the output of what failed.
result() { # lane tier name outcome seconds log
  local counted
  counted=$(counts "$6")
  echo "$1|$2|$3|$4|$5|$counted" >>"$work/results"
  local IFS='|' passed failed ignored
  read -r passed failed ignored <<<"$counted"
  printf '%-7s %5d s  %-5s %s%s\n' "$4" "$5" "$1" "$3" \
    "$([ "$passed$failed$ignored" = 000 ] || echo ": $passed passed, $failed failed, $ignored ignored")"
  if [ "$4" = FAILED ]; then
    # One write, so that what two lanes say does not mix.
    printf '%s\n' "$(echo "---- output of $3 (all of it in $6)"; tail -n "${SHOWN_LINES:-400}" "$6"; echo "---- end of $3")"
  fi
}

# What the harness said in a log: passed|failed|ignored.
counts() { # log
  awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
       END { printf "%d|%d|%d", passed, failed, ignored }' "$1"
}

# What was missing where a line says that something did not run.
need_of() { # line
  case "$1" in
    image:*) echo ldd ;;
    contract:*) echo sdk ;;
    named:*) echo named ;;
    *helm*) echo helm ;;
    *) echo controlplane ;;
  esac
}

# Whether PORTOLAN_REQUIRE demands something: what is demanded and missing fails the run.
is_required() { # need
  [[ ",${PORTOLAN_REQUIRE:-}," == *",$1,"* ]]
}

# A misspelt demand would demand nothing.
check_required() {
  local word
  for word in $(tr ',' ' ' <<<"${PORTOLAN_REQUIRE:-}"); do
    case "$word" in
      controlplane | helm | sdk | named) ;;
      *) echo "PORTOLAN_REQUIRE: there is no $word; it is a list of controlplane, helm, sdk, named" >&2; return 1 ;;
    esac
  done
}

# Ends every job that is running, by its process id; a test's own processes are in its group.
stop_jobs() {
  local pid
  for pid in "$work"/pids/*; do
    pid=${pid##*/}
    [ "$pid" = '*' ] || kill -TERM "$pid" 2>/dev/null
  done
  for pid in "$work"/pids/*; do
    pid=${pid##*/}
    [ "$pid" = '*' ] && continue
    for _ in {1..25}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
    kill -KILL -- "-$pid" 2>/dev/null
  done
  # What they had said is part of the run.
  local out
  for out in "$logs"/*.out; do
    [ -f "$out" ] && cat "$out" "${out%.out}.err" >"${out%.out}.log" 2>/dev/null && rm -f "$out" "${out%.out}.err"
  done
}
