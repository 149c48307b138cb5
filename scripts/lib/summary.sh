# What a run of tests came to: tiers, counts, what did not run, minutes a lane, the slowest tests. Sourced.

# Lines of the suites that say how much they did.
TOLD='^parity|^(lifecycle|crash points|histories|attacks|deletion orders|two tokens|plans|untrusted|scale|real|examples|fail closed|neighbours|kills|migration|roles|contract|facts|docs|helm|invariants|drift|pacing|engine|self-check):|^regressions: [0-9]'

# Prints everything, and tells whether the run is green.
summary() {
  printf '\n==== Summary (%s) ====\n' "$(minutes_of $((EPOCHSECONDS - began)))"
  touch "$work/results"
  tiers
  told
  scenarios
  lanes
  slowest
  not_run
  by_hand
  verdict
}

minutes_of() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); } # seconds

# A line for each tier, in the order in which the first of each ended: the worst outcome of its jobs.
tiers() {
  awk -F'|' '
    !($2 in jobs) { order[++n] = $2 }
    { jobs[$2]++; seconds[$2] += $5; passed[$2] += $6; failed[$2] += $7; ignored[$2] += $8 }
    $4 == "FAILED" { bad[$2]++ }
    $4 == "NOT RUN" { missing[$2]++ }
    END {
      for (i = 1; i <= n; i++) {
        t = order[i]
        outcome = bad[t] ? "FAILED " : missing[t] ? "NOT RUN" : "ok     "
        line = sprintf("%s %s (%d s", outcome, t, seconds[t])
        if (jobs[t] > 1) line = line sprintf(" in %d executables", jobs[t])
        line = line ")"
        if (passed[t] + failed[t] + ignored[t]) line = line sprintf(": %d passed, %d failed, %d ignored", passed[t], failed[t], ignored[t])
        if (bad[t]) line = line sprintf("; %d of %d failed", bad[t], jobs[t])
        if (missing[t]) line = line sprintf("; %d of %d say what they did not run", missing[t], jobs[t])
        print line
      }
    }' "$work/results"
}

# What the suites counted; what did not run is told apart.
told() {
  cat "$logs"/*.log 2>/dev/null | grep -E "$TOLD" | grep -vE 'NOT RUN|BY HAND' | sort -u
}

# Numbers of scenarios, from the tests of this run: a number counts where one of its tests passed and none failed or was
# left out. tests/scenarios.txt says which numbers there are, and in which sources their tests stand.
scenarios() {
  [ -n "$partly" ] && return 0
  local job numbers pattern missing
  while read -r job numbers pattern; do
    case "$job" in '#'* | '') continue ;; esac
    missing=$(missing_scenarios "$numbers" "$pattern")
    if [ -z "$missing" ]; then
      echo "scenarios: all $(listed "$numbers" | wc -l) of the $job job ran and passed"
    else
      echo "scenarios: FAILED: of $(listed "$numbers" | wc -l) of the $job job these did not run or did not pass:$(printf ' %s' $missing)"
      echo "$job" >>"$work/faults"
    fi
  done <tests/scenarios.txt
}

# 1-3,7 → 1 2 3 7, one a line
listed() { # numbers
  tr ',' '\n' <<<"$1" | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

# Those of the numbers that no passing test has, or a failing or ignored one.
missing_scenarios() { # numbers source-pattern
  {
    listed "$1" | sed 's/^/wanted /'
    scenario_tests "$2" | sed 's/^/source /'
    cat "$logs"/*.log 2>/dev/null | sed -nE 's/^test ([^ ]*::)?(scenario_[0-9]+[a-z0-9_]*)( - should panic)? \.\.\. (ok|FAILED|ignored).*/\4 \2/p'
  } | awk '
    function number(name) { sub(/^scenario_/, "", name); return name + 0 }
    $1 == "wanted" { wanted[$2] = 1; next }
    $1 == "source" { ours[$2] = 1; next }
    !($2 in ours) { next }
    $1 == "ok" { passed[number($2)] = 1; next }
    { spoilt[number($2)] = 1 }
    END { for (one in wanted) if (!(one in passed) || one in spoilt) print one }' | sort -n
}

# Names of the scenarios' tests in the sources whose path fits.
scenario_tests() { # source-pattern
  find crates -name '*.rs' -path '*/tests/*' -not -path '*/target/*' | grep -E "$1" |
    xargs -r grep -hoE 'fn scenario_[0-9]+[a-z0-9_]*' | cut -d' ' -f2 | sort -u
}

# Minutes a lane: of its jobs, and from its first to its last.
lanes() {
  awk -F'|' '{ s[$1] += $5; n[$1]++ }
    END { for (l in s) printf "lane %s: %d min %02d s in %d jobs\n", l, s[l] / 60, s[l] % 60, n[l] }' "$work/results" | sort
}

# The tests and executables that took longest. A test begins when a thread is free: the harness takes them by name.
slowest() {
  local file name threads
  [ -s "$work/queued" ] || return 0
  while IFS='|' read -r _ _ threads name _ _; do
    file=$(file_of "$name").times
    [ -s "$file" ] || continue
    awk '$2 == "test" && /\.\.\. (ok|FAILED|ignored)/ { print $1, $3 }' "$file" >"$work/ended"
    {
      awk 'NR == 1 { print "begin", $1 }' "$file"
      awk '{ print $2 }' "$work/ended" | LC_ALL=C sort | sed 's/^/test /'
      cat "$work/ended"
    } | awk -v threads="$threads" -v executable="$name" '
      $1 == "begin" { begin = $2; next }
      $1 == "test" { queue[++tests] = $2; if (tests <= threads) started[$2] = begin; next }
      # An executable with threads of its own keeps to no queue: then the whole run of it is all that is known.
      { printf "%.1f %s %s\n", $1 - ($2 in started ? started[$2] : begin), executable, $2
        next_one = ++done + threads
        if (next_one <= tests) started[queue[next_one]] = $1 }'
  done <"$work/queued" >"$work/tests"
  echo "The slowest tests (s):"
  sort -rn "$work/tests" | head -n 10 | sed 's/^/  /'
  echo "The slowest executables (s):"
  awk -F'|' '$1 != "lint" { print $5, $3 }' "$work/results" | sort -rn | head -n 10 | sed 's/^/  /'
}

not_run() {
  local lines
  lines=$({ cat "$work/missing" 2>/dev/null; cat "$logs"/*.log 2>/dev/null | grep 'NOT RUN'; } | sort -u)
  [ -n "$lines" ] || return 0
  echo "What was NOT run:"
  while IFS= read -r line; do echo "  $line"; done <<<"$lines"
}

# Commands of the documentation that only people run: nothing that is missing here.
by_hand() {
  local lines
  lines=$(cat "$logs"/*.log 2>/dev/null | sed -n 's/^.*docs: BY HAND: //p' | sort -u)
  [ -n "$lines" ] || return 0
  echo "Commands of the documentation that only people run (no test, always so):"
  while IFS= read -r line; do echo "  $line"; done <<<"$lines"
}

# Whether each executable that was built ran once.
each_ran_once() {
  local built ran
  [ -f "$work/queued" ] || return 0
  built=$(cut -d'|' -f4 "$work/queued" | sort)
  ran=$(awk -F'|' '$3 ~ /:/ { print $3 }' "$work/results" | sort)
  echo "executables: $(wc -l <"$work/executables") built, $(grep -c . <<<"$built") chosen, $(grep -c . <<<"$ran") run"
  [ "$built" = "$ran" ] && return 0
  echo "executables: FAILED: built and run differ:"
  diff <(echo "$built") <(echo "$ran") | grep '^[<>]' | sed 's/^</  not run:/; s/^>/  run beyond that:/'
  return 1
}

verdict() {
  local failed
  each_ran_once || echo executables >>"$work/faults"
  [ -z "$ended_early" ] || { echo "FAILED: $ended_early"; echo early >>"$work/faults"; }
  [ -z "$partly" ] || echo "Only a part was run: $partly"
  failed=$(awk -F'|' '$4 == "FAILED" { n++ } END { print n + 0 }' "$work/results")
  failed=$((failed + $(cat "$work/faults" 2>/dev/null | wc -l)))
  if [ "$failed" -gt 0 ]; then
    echo "FAILED: $failed; the output is in $logs/"
    return 1
  fi
  if [ -s "$work/missing" ] || grep -q '|NOT RUN|' "$work/results"; then
    echo "All that ran has passed; not everything was run."
  else
    echo "Everything ran, and has passed."
  fi
}
