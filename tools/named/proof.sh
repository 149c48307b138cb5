# Whether a named really serves: sourced by build.sh.

# Starts it a year from now with a zone in a temporary folder, as another user where this one is root, on a high port of the loopback
# interface; asks it by dig, and ends it by rndc.
serves_a_zone() { # folder of programs
  local bin=$1 folder port rndc other=() pid code=1
  folder=$(mktemp -d "${TMPDIR:-/tmp}/portolan-named.XXXXXX")
  [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && other=(setpriv --reuid=47771 --regid=47771 --clear-groups)
  for port in $(shuf -i 20000-60000 -n 5); do
    rndc=$((port + 1))
    proof_files "$bin" "$folder" "$port" "$rndc"
    [ -z "${other[*]-}" ] || chown -R 47771:47771 "$folder"
    ${other[@]+"${other[@]}"} "$bin/faketime" -f +365d "$bin/named" -c "$folder/named.conf" -f -n 1 >"$folder/said" 2>&1 9>&- &
    pid=$!
    if proof_answer "$bin" "$folder" "$port" "$pid"; then
      code=0
      ${other[@]+"${other[@]}"} "$bin/faketime" -f +365d "$bin/rndc" -c "$folder/rndc.conf" stop >/dev/null 2>&1 || code=1
    fi
    [ "$code" = 0 ] || kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    [ "$code" = 0 ] && break
  done
  [ "$code" = 0 ] || tail -n 5 "$folder/said" "$folder/log" >&2 2>/dev/null || true
  rm -rf "$folder"
  return "$code"
}

proof_files() { # bin folder port rndc-port
  local secret="c2VjcmV0c2VjcmV0c2VjcmV0"
  cat >"$2/named.conf" <<CONF
key "proof" { algorithm hmac-sha256; secret "$secret"; };
controls { inet 127.0.0.1 port $4 allow { 127.0.0.1; } keys { "proof"; }; };
options {
  directory "$2"; pid-file "$2/pid"; session-keyfile "$2/session.key";
  listen-on port $3 { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no;
};
logging { channel proof { file "$2/log"; }; category default { proof; }; };
zone "proof.test" { type primary; file "$2/zone"; };
CONF
  cat >"$2/rndc.conf" <<CONF
key "proof" { algorithm hmac-sha256; secret "$secret"; };
options { default-server 127.0.0.1; default-key "proof"; default-port $4; };
CONF
  printf '%s\n' '$TTL 60' '@ SOA ns root 1 60 60 60 60' '@ NS ns' 'ns A 127.0.0.1' '@ TXT "it serves"' >"$2/zone"
}

proof_answer() { # bin folder port pid
  local answer
  "$1/named-checkconf" -z "$2/named.conf" >/dev/null || return 1
  for _ in $(seq 50); do
    answer=$("$1/dig" @127.0.0.1 -p "$3" +short +tries=1 +time=1 proof.test TXT 2>/dev/null || true)
    [ "$answer" = '"it serves"' ] && return 0
    kill -0 "$4" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}
