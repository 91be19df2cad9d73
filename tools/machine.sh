# Sourced by ./test and ./up: makes the machine ready to build. What is there is left alone.
# What is built goes to HANGAR_CACHE (default: hangar in the user's cache directory), not into the clone.

say() { printf '== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "Hangar runs real Kubernetes programs and needs Linux"

# A C compiler and make, for the TLS library and the allocator; everything else comes with Rust and Go.
if ! command -v cc >/dev/null 2>&1 || ! command -v make >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || fail "no C compiler or no make: install both (Debian: apt-get install gcc libc6-dev make), or run this as root"
  command -v apt-get >/dev/null 2>&1 || fail "no C compiler or no make, and no apt-get to install them with"
  say "installing a C compiler and make"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev make
fi

command -v cargo >/dev/null 2>&1 || [ ! -e "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"
if ! command -v cargo >/dev/null 2>&1; then
  fail "no Rust: install rustup (https://rustup.rs); the toolchain that rust-toolchain.toml names is then fetched by itself"
fi
# Components of the pinned toolchain that a minimal installation lacks.
if command -v rustup >/dev/null 2>&1; then
  for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
  done
fi

# Outside the clone, so that a fresh clone does not start from nothing.
cache=${HANGAR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hangar}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
# A clean checkout is compiled once: what makes a second compilation quicker would only fill the disk.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
