#!/usr/bin/env bash
# Makes the images that `npm run demo` and the tests install: a GPT disk with an EFI system partition (FAT16) and an
# ext4 root, with one marker file that says which payload it stands for. They do not boot: the simulated node reads the
# marker and the seed back from its disk file.
#
# The result is committed, so nobody needs the tools: gdisk, dosfstools, mtools, e2fsprogs. No root, no loop device.
# Everything that varies is pinned (GUIDs, volume ids, times), so a second run gives the same bytes.
#
#   scripts/make-demo-images.sh [--check]      --check: compare with what is committed, change nothing
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=1767225600 E2FSPROGS_FAKE_TIME=1767225600 MTOOLS_SKIP_CHECK=1
PATH=$PATH:/usr/sbin:/sbin

for tool in sgdisk mkfs.fat mcopy mke2fs debugfs gzip sha256sum; do
  command -v "$tool" >/dev/null || { echo "make-demo-images: $tool is missing (apt-get install gdisk dosfstools mtools e2fsprogs)" >&2; exit 2; }
done

OUT=demo/images
FIXTURES=test/fixtures/images
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --check ]; then
  MADE=$work/made MADE_FIXTURES=$work/fixtures
else
  MADE=$OUT MADE_FIXTURES=$FIXTURES
fi
mkdir -p "$MADE" "$MADE_FIXTURES"

MIB=1048576
ESP_AT=1 ESP_SIZE=3 ROOT_AT=4 ROOT_SIZE=11 SIZE=16

# uuid PAYLOAD_NUMBER PART: a fixed GUID for each thing in each image.
uuid() { printf '6d657461-6c66-4c6f-8f77-%06x%06x' "$1" "$2"; }

# every_time FILE PATH...: the times of these inodes, which mke2fs -d takes from the copied files, set to the epoch.
every_time() {
  local image=$1 path field
  shift
  for path in "$@"; do
    for field in atime ctime mtime crtime; do echo "set_inode_field $path $field @$SOURCE_DATE_EPOCH"; done
    for field in atime_extra ctime_extra mtime_extra crtime_extra; do echo "set_inode_field $path $field 0"; done
  done | debugfs -w -f - "$image" >/dev/null 2>&1
}

make_image() { # NUMBER PAYLOAD
  local number=$1 payload=$2 dir=$work/$2
  mkdir -p "$dir/esp" "$dir/root/etc" "$dir/root/var/lib"
  printf '{"payload":"%s","version":1}\n' "$payload" | tee "$dir/esp/payload.json" >"$dir/root/etc/metalflow-payload.json"
  find "$dir" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  chmod -R u=rwX,go=rX "$dir/root"

  truncate -s $((ESP_SIZE * MIB)) "$dir/esp.img"
  # One sector a cluster: more than 4,085 clusters, which is what makes it FAT16 and not FAT12.
  mkfs.fat --invariant -F 16 -s 1 -i "4d4601$(printf %02x "$number")" -n ESP "$dir/esp.img" >/dev/null
  mcopy -m -i "$dir/esp.img" "$dir/esp/payload.json" ::/payload.json

  truncate -s $((ROOT_SIZE * MIB)) "$dir/root.img"
  mke2fs -q -t ext4 -L root -U "$(uuid "$number" 16)" -E "hash_seed=$(uuid "$number" 17),root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0" \
    -d "$dir/root" "$dir/root.img"
  every_time "$dir/root.img" / /lost+found /etc /etc/metalflow-payload.json /var /var/lib
  e2fsck -fn "$dir/root.img" >/dev/null 2>&1

  truncate -s $((SIZE * MIB)) "$dir/disk.img"
  sgdisk --set-alignment=2048 \
    --new="1:$((ESP_AT * 2048)):$(((ESP_AT + ESP_SIZE) * 2048 - 1))" --typecode=1:ef00 --change-name=1:ESP --partition-guid="1:$(uuid "$number" 1)" \
    --new="2:$((ROOT_AT * 2048)):$(((ROOT_AT + ROOT_SIZE) * 2048 - 1))" --typecode=2:8304 --change-name=2:root --partition-guid="2:$(uuid "$number" 2)" \
    --disk-guid="$(uuid "$number" 0)" "$dir/disk.img" >/dev/null
  dd if="$dir/esp.img" of="$dir/disk.img" bs=$MIB seek=$ESP_AT conv=notrunc status=none
  dd if="$dir/root.img" of="$dir/disk.img" bs=$MIB seek=$ROOT_AT conv=notrunc status=none
  gzip -9n <"$dir/disk.img" >"$MADE/$payload.raw.gz"
}

entry() { # PAYLOAD
  local packed=$MADE/$1.raw.gz
  printf '  { "payload": "%s", "file": "%s.raw.gz", "compression": "gzip", "sha256": "%s", "sizeBytes": %d, "unpackedBytes": %d, "contentDigest": "%s" }' \
    "$1" "$1" "$(sha256sum <"$packed" | cut -c1-64)" "$(stat -c %s "$packed")" $((SIZE * MIB)) "$(sha256sum <"$work/$1/disk.img" | cut -c1-64)"
}

make_image 1 talos
make_image 2 nixos-image
make_image 3 alpine-image
make_image 4 cloud-init-nocloud
{
  echo '['
  entry talos; echo ','
  entry nixos-image; echo ','
  entry alpine-image; echo ','
  entry cloud-init-nocloud; echo
  echo ']'
} >"$MADE/index.json"

# FAT32 starts at 65,525 clusters: an ESP of the size that real images have, for the tests of the seed.
truncate -s $((34 * MIB)) "$work/fat32.img"
mkfs.fat --invariant -F 32 -s 1 -i 4d460020 -n ESP "$work/fat32.img" >/dev/null
gzip -9n <"$work/fat32.img" >"$MADE_FIXTURES/fat32-esp.img.gz"

if [ "${1:-}" = --check ]; then
  diff -r "$MADE" "$OUT" && diff -r "$MADE_FIXTURES" "$FIXTURES" && echo 'make-demo-images: what is committed is what this makes'
else
  ls -l "$OUT" "$FIXTURES"
fi
