#!/usr/bin/env bash
# Makes BIND's server and tools (and faketime) ready in a cache outside the tree, and prints the folder with their programs.
# A second call is a no-op. Nothing is installed on the system, and no service is started.
#
# Those on PATH are preferred, where all of them are there and work. Otherwise Debian's (or Ubuntu's) packages are downloaded and
# unpacked: which ones, apt says; each program gets a wrapper with LD_LIBRARY_PATH. Without either the exit code is 3, and
# what needs them says that it did not run. What is here and does not work is exit code 4.
#
# The folder must be open to other users, since pods have users of their own: where root's home is closed to them, it is below
# /var/cache/portolan. PORTOLAN_CACHE names another place.
set -euo pipefail
cd "$(dirname "$0")"
. ./proof.sh

programs="named rndc rndc-confgen tsig-keygen named-checkconf named-checkzone named-compilezone dig delv nsupdate
  dnssec-keygen dnssec-signzone dnssec-dsfromkey dnssec-settime dnssec-verify dnssec-importkey dnssec-keyfromlabel dnssec-revoke dnssec-cds"
packages="bind9 bind9-utils bind9-dnsutils faketime"
# What the machine has in any case, and what may not be mixed with its own.
never="libc6 libgcc-s1 libstdc++6 gcc-12-base base-files debconf init-system-helpers adduser passwd lsb-base sysvinit-utils"
# Another recipe unpacks again.
recipe=1
# Where programs of administrators are, which are not on everybody's PATH.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C

say() { echo "named: $*" >&2; }

# Whether another user gets into a folder.
is_open() { # folder
  local folder=$1
  while [ "$folder" != / ]; do
    if [ -e "$folder" ]; then
      case "$(stat -c %A "$folder")" in *[xt]) ;; *) return 1 ;; esac
    fi
    folder=$(dirname "$folder")
  done
}

cache_folder() {
  if [ -n "${PORTOLAN_CACHE:-}" ]; then
    echo "$PORTOLAN_CACHE/named"
  elif [ "$(id -u)" != 0 ] || is_open "$HOME/.cache/portolan"; then
    echo "$HOME/.cache/portolan/named"
  else
    echo /var/cache/portolan/named
  fi
}

# A folder of links to the programs on PATH, where all of them are there and work.
on_path() { # folder
  local name found bin=$1/on-path/bin
  command -v faketime >/dev/null || return 1
  for name in $programs; do command -v "$name" >/dev/null || return 1; done
  mkdir -p "$bin"
  for name in $programs faketime; do
    found=$(command -v "$name")
    [ "$(readlink "$bin/$name" || true)" = "$found" ] || ln -sfn "$found" "$bin/$name"
  done
  is_proven "$bin" "$1/on-path" || { say "the named on PATH does not serve a zone in a temporary folder (AppArmor?); another one is unpacked"; return 1; }
  echo "$bin"
}

# Whether they work, tried once for each version.
is_proven() { # bin folder
  local version
  version=$("$1/named" -v 2>/dev/null) || return 1
  [ "$(cat "$2/proven" 2>/dev/null)" = "$version" ] && return 0
  serves_a_zone "$1" && echo "$version" >"$2/proven"
}

# What was unpacked before for this system and by this recipe, the newest.
unpacked() { # folder system
  local found
  found=$(ls -d "$1"/*-"$2" 2>/dev/null | sort -V | tail -n 1)
  [ -n "$found" ] && is_proven "$found/bin" "$found" && echo "$found/bin"
}

# apt with lists and caches of its own: the system's are not touched, and nobody needs to be root.
own_apt() { # folder command…
  local folder=$1 program=$2
  shift 2
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  "$program" -q -o APT::Sandbox::User= -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" \
    -o Dir::Cache::archives="$folder/archives" -o Debug::NoLocking=1 "$@"
}

# The packages to unpack, as PACKAGE=VERSION: those asked for, and what apt says that they need and is not here.
needed() { # apt's folder
  own_apt "$1" apt-get install -s --no-install-recommends --reinstall $packages 2>/dev/null |
    awk -v never="$never" 'BEGIN { split(never, names, " "); for (i in names) skip[names[i]] = 1 }
      $1 == "Inst" && !($2 in skip) { if (match($0, /\([^ )]+/)) print $2 "=" substr($0, RSTART + 1, RLENGTH - 1) }' | sort -u
}

# Downloads and unpacks into a folder.
unpack() { # apt's folder, folder, package=version…
  local apt=$1 folder=$2 file
  shift 2
  mkdir -p "$apt/debs" "$folder/root"
  (cd "$apt/debs" && own_apt "$apt" apt-get download "$@" >/dev/null) || return 1
  for file in "$apt"/debs/*.deb; do dpkg-deb -x "$file" "$folder/root"; done
}

# A program that finds the unpacked libraries, wherever the folder is.
wrapper() { # folder program
  local libraries
  libraries=$(cd "$1/root" && find usr/lib lib -name '*.so*' -printf '%h\n' 2>/dev/null | sort -u | sed 's#^#$root/#' | paste -sd:)
  cat >"$1/bin/${2##*/}" <<WRAPPER
#!/bin/sh
root=\$(dirname -- "\$(dirname -- "\$(readlink -f -- "\$0")")")/root
LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$root/$2" "\$@"
WRAPPER
  chmod 755 "$1/bin/${2##*/}"
}

wrappers() { # folder
  local name found
  mkdir -p "$1/bin"
  for name in $programs; do
    found=$(cd "$1/root" && find usr/sbin usr/bin sbin bin \( -type f -o -type l \) -name "$name" -print -quit 2>/dev/null)
    [ -n "$found" ] || { say "the packages $packages have no $name"; return 4; }
    wrapper "$1" "$found"
  done
  faketime_wrapper "$1"
}

# Debian's faketime looks for its library where the package would have put it. And BIND is linked with jemalloc, which asks for
# the time while it is made ready, and libfaketime allocates while it is: libc's own malloc before jemalloc's ends that circle
# (https://github.com/wolfcw/libfaketime/issues/130).
faketime_wrapper() { # folder
  local library
  library=$(cd "$1/root" && find usr/lib -name libfaketime.so.1 -print -quit)
  [ -n "$library" ] || { say "the packages have no libfaketime.so.1"; return 4; }
  cat >"$1/bin/faketime" <<WRAPPER
#!/bin/sh
# faketime [-f] TIME COMMAND…: the time is absolute (YYYY-MM-DD hh:mm:ss) or, with -f, as libfaketime's FAKETIME has it.
root=\$(dirname -- "\$(dirname -- "\$(readlink -f -- "\$0")")")/root
case "\$1" in
  -f) shift; time=\$1 ;;
  +* | -*) time=\$1 ;;
  *) time=\$(date -d "\$1" '+@%Y-%m-%d %H:%M:%S') || exit 2 ;;
esac
shift
LD_PRELOAD="\$root/$library:libc.so.6\${LD_PRELOAD:+:\$LD_PRELOAD}" FAKETIME="\$time" exec "\$@"
WRAPPER
  chmod 755 "$1/bin/faketime"
}

# Unpacks what is not there yet.
make_ready() { # folder system
  local cache=$1 system=$2 version list
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    say "no named with its tools and faketime on PATH, and no apt-get to unpack it from: install BIND 9 and faketime"
    exit 3
  }
  work=$(mktemp -d "$cache/.new.XXXXXX")
  # Not local: it is read when the shell ends.
  trap 'rm -rf "${work:?}"' EXIT
  say "unpacking BIND and faketime from the packages of ${system%-*-*} (about half a minute, once; nothing is installed)"
  own_apt "$work/apt" apt-get update >"$work/said" 2>&1 && list=$(needed "$work/apt") && [ -n "$list" ] || {
    tail -n 5 "$work/said" >&2
    say "apt-get knows no packages $packages here: install BIND 9 and faketime"
    exit 3
  }
  version=$(sed -n 's/^bind9=\([0-9]*:\)\?\([0-9.]*\).*/\2/p' <<<"$list")
  unpack "$work/apt" "$work/new" $list || { say "the packages could not be downloaded"; exit 3; }
  wrappers "$work/new"
  chmod 755 "$work"
  chmod -R a+rX "$work/new"
  serves_a_zone "$work/new/bin" >&2 || { say "BIND $version was unpacked, and does not serve a zone"; exit 4; }
  "$work/new/bin/named" -v >"$work/new/proven"
  printf '%s\n' "$list" >"$work/new/packages"
  rm -rf "${cache:?}/$version-$system"
  mv "$work/new" "$cache/$version-$system"
  say "$(wc -l <<<"$list") packages unpacked"
  echo "$cache/$version-$system/bin"
}

main() {
  local cache system
  cache=$(cache_folder)
  system=$(. /etc/os-release 2>/dev/null; echo "${ID:-linux}${VERSION_ID:-}")-$(uname -m)-r$recipe
  umask 022
  mkdir -p "$cache"
  on_path "$cache" && return
  unpacked "$cache" "$system" && return
  # One at a time; who waited finds it unpacked.
  exec 9>"$cache/.lock"
  flock 9
  unpacked "$cache" "$system" || make_ready "$cache" "$system"
}
main
