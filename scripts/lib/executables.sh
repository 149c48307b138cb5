# The test executables of the workspace: built once, each in a lane. Sourced.

# Builds all of them and the binaries; writes a line `name|folder|file` for each to $work/executables.
build_executables() { # flag…
  local messages=$work/messages.json
  # One call, so that one set of features is built: bins alone would be built without what only tests ask for.
  cargo build --workspace --bins --tests --message-format=json-render-diagnostics "$@" >"$messages" || return 1
  executables_of "$messages" >"$work/executables"
  [ -s "$work/executables" ] || { echo "the build names no test executable" >&2; return 1; }
}

# Test executables in what cargo says of a build.
executables_of() { # file
  grep '"reason":"compiler-artifact"' "$1" | grep '"test":true},"features"' | grep -v '"executable":null' |
    sed -nE 's#.*"manifest_path":"([^"]*)/Cargo\.toml","target":\{"kind":\["([^"]*)".*"name":"([^"]*)","src_path".*"executable":"([^"]*)".*#\1|\2|\3|\4#p' |
    while IFS='|' read -r folder kind name file; do
      case "$kind" in
        test) ;;
        bin) name=bin/$name ;;
        *) name=lib ;;
      esac
      echo "${folder#"$PWD"/crates/}:$name|$folder|$file"
    done | sort -u
}

# The row of scripts/lanes for an executable: `number|lane|threads`.
lane_of() { # name
  local pattern lane threads number=0
  while read -r pattern lane threads; do
    case "$pattern" in '#'* | '') continue ;; esac
    number=$((number + 1))
    # shellcheck disable=SC2053
    if [[ $1 == $pattern ]]; then
      [ "$threads" = - ] && threads=$(nproc)
      echo "$number|$lane|$threads"
      return
    fi
  done <scripts/lanes
  echo "999|cpu|$(nproc)"
}

tier_of() { # name
  case "$1" in
    *:lib | *:bin/*) echo "Unit and property tests" ;;
    apiserver/parity:*) echo "Parity with the real API server and kubectl" ;;
    portolan:docs) echo "Documentation: every command" ;;
    *) echo "Integration tests (controllers, histories, crash points, the binary, kill -9)" ;;
  esac
}

# Puts the executables whose name fits into the queues of their lanes: $work/queue.LANE, the longest first.
queue_executables() { # pattern…
  local name folder file row number lane threads
  : >"$work/queued"
  while IFS='|' read -r name folder file; do
    fits "$name" "$@" || continue
    IFS='|' read -r number lane threads < <(lane_of "$name")
    echo "$number|$lane|$threads|$name|$folder|$file" >>"$work/queued"
  done <"$work/executables"
  for lane in cpu wait quiet; do
    sort -t'|' -s -n -k1,1 "$work/queued" | awk -F'|' -v lane="$lane" '$2 == lane' >"$work/queue.$lane"
  done
}

# Whether a name fits one of the patterns, or there are none.
fits() { # name pattern…
  local name=$1 pattern
  shift
  [ $# = 0 ] && return 0
  # shellcheck disable=SC2053
  for pattern; do [[ $name == $pattern ]] && return 0; done
  return 1
}

# Takes the first line of the first queue that has one.
take() { # lane…
  local lane line
  for lane; do
    line=$({ flock 9 && head -n 1 "$work/queue.$lane" && sed -i 1d "$work/queue.$lane"; } 9>"$work/lock")
    [ -n "$line" ] && { echo "$line"; return 0; }
  done
  return 1
}

# Runs executables of its lanes until the queues are empty.
worker() { # lane…
  local line number lane threads name folder file
  while line=$(take "$@"); do
    IFS='|' read -r number lane threads name folder file <<<"$line"
    run_executable "$lane" "$threads" "$name" "$folder" "$file"
  done
}

run_executable() { # lane threads name folder file
  local tier variables
  tier=$(tier_of "$3")
  # As cargo would: in the folder of the package.
  variables=(CARGO="$(command -v cargo)" CARGO_MANIFEST_DIR="$4" INSTA_WORKSPACE_ROOT="$PWD")
  # Every simulator of these records the requests of our controllers; the contract tier checks them.
  case "$tier" in Integration* | Documentation*) variables+=(PORTOLAN_RECORD_DIR="$recordings") ;; esac
  job "$1" "$tier" "$3" "$4" env "${variables[@]}" "$5" --test-threads="$2"
}
