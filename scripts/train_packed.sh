#!/usr/bin/env bash
# Train on a machine without a network, from what scripts/pack_training.py has packed. Call it in the checkout.
#
#   scripts/train_packed.sh PACK WORK OUT SECONDS CONFIG [options of `primaldepth train`]
#
# PACK     what was packed
# WORK     a folder outside the checkout, for everything unpacked, the scenes and the run
# OUT      gets weights, cards and logs whenever this returns
# SECONDS  after which it returns; the training goes on, and the same call follows it again
# CONFIG   recipe, a file of configs/
set -euo pipefail
[ $# -ge 5 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
pack=$(realpath "$1") work=$(realpath -m "$2") out=$(realpath -m "$3") seconds=$4 config=$5
shift 5

start() {
  mkdir -p "$work/packages"
  cp -r src scripts configs "$work/"
  tar -xJf "$pack/packages.tar.xz" -C "$work/packages"
  tar -xf "$pack/frames.tar" --one-top-level="$work/frames"
  cd "$work"
  export PYTHONPATH="$work/src:$work/packages${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
  PRIMALDEPTH_COMMIT=$(cat "$pack/commit")
  export PRIMALDEPTH_COMMIT
  objects=()
  if [ -e "$pack/objects.npz" ]; then
    python3 scripts/unpack_objects.py "$pack/objects.npz" objects
    objects=(--set "scenes.0.meshes=$work/objects")
  fi
  setsid nohup python3 -m primaldepth train "$config" "${objects[@]}" --data scenes --out run --validation frames \
    --workers "$(nproc)" --resume "$@" >log 2>&1 </dev/null &
  echo $! >pid
}

[ -e "$work/pid" ] || (start "$@")
tail -n +1 -F "$work/log" --pid="$(cat "$work/pid")" 2>/dev/null &
tail=$!
while [ $SECONDS -lt "$seconds" ] && kill -0 "$(cat "$work/pid")" 2>/dev/null; do sleep 1; done
sleep 1
kill $tail 2>/dev/null || true
mkdir -p "$out"
for file in "$work"/run/*.safetensors "$work"/run/*.json "$work"/run/log.jsonl "$work/log"; do
  case $file in */checkpoint*) continue ;; esac
  [ -e "$file" ] && cp "$file" "$out/"
done
kill -0 "$(cat "$work/pid")" 2>/dev/null && echo "training goes on" || echo "training has ended"
