/** `write-image`: the image of the class onto the pinned disk, proven as fetched, as unpacked and as read back. */
import { createHash, type Hash } from 'node:crypto';
import type { z } from 'zod';
import { isMetalflowError, MetalflowError } from '../../domain/errors.js';
import type { WriteImageAction } from '../../contracts/order.js';
import { downloadImage } from '../image-download.js';
import { blankHead, createImageWriter } from '../image-writer.js';
import type { DiskHandle } from '../../contracts/agent-machine.js';
import { findDiskToDestroy, withDisk } from '../pinned-disk.js';
import { unpack } from '../unpack.js';
import { MIB, type ActionContext, type DoAction } from './action.js';

type Image = z.infer<typeof WriteImageAction>;

/** Yields what the download yields and hashes it. Ending it early leaves the download open, so that the rest can be hashed too. */
async function* hashed(download: AsyncIterator<Buffer>, first: IteratorResult<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for (let next = first; !next.done; next = await download.next()) {
    hash.update(next.value);
    yield next.value;
  }
}

/** Fetches, unpacks and writes. @returns the digest of the unpacked bytes; the head is not yet written */
async function transfer(disk: DiskHandle, image: Image, context: ActionContext): Promise<{ contentDigest: string; seal: () => Promise<void> }> {
  const { url, sizeBytes, unpackedBytes, compression } = image;
  const { signal, sleep, dispatcher, progress } = context;
  const download = downloadImage({ url, sizeBytes, signal, sleep, dispatcher });
  const asFetched = createHash('sha256');
  try {
    // Nothing of the disk is touched before the server's answer was found right.
    const first = await download.next();
    const writer = await createImageWriter(disk, image);
    let unpackError: unknown = null;
    let tooMuch = false;
    try {
      for await (const chunk of unpack(compression, hashed(download, first, asFetched))) {
        signal.throwIfAborted();
        tooMuch = writer.written + chunk.length > unpackedBytes;
        if (tooMuch) break;
        await writer.write(chunk);
        progress({ done: writer.written, total: unpackedBytes, unit: 'bytes', note: 'writing' });
      }
    } catch (error) {
      if (isMetalflowError(error) || signal.aborted || compression === 'none') throw error;
      unpackError = error;
    }
    // Also when unpacking failed, ended early or gave too much: which bytes came is what tells a bad store from a bad class.
    for (let next = await download.next(); !next.done; next = await download.next()) asFetched.update(next.value);
    const found = asFetched.digest('hex');
    if (found !== image.sha256) throw new MetalflowError('image_digest_mismatch', { url, expected: image.sha256, found });
    if (unpackError) throw new MetalflowError('image_unpack_failed', { url, compression, why: (unpackError as Error).message.slice(0, 300) });
    if (tooMuch) throw new MetalflowError('image_too_large', { url, limit: unpackedBytes });
    if (writer.written !== unpackedBytes) throw new MetalflowError('image_truncated', { url, expected: unpackedBytes, found: writer.written });
    const contentDigest = writer.digest();
    if (image.contentDigest !== undefined && image.contentDigest !== contentDigest) throw new MetalflowError('image_digest_mismatch', { url, expected: image.contentDigest, found: contentDigest });
    return { contentDigest, seal: () => writer.seal() };
  } finally {
    await download.return();
  }
}

/** SHA-256 of the first `length` bytes of the disk. */
async function readBack(disk: DiskHandle, length: number, { signal, progress }: ActionContext): Promise<string> {
  const hash = createHash('sha256');
  for (let position = 0; position < length; position += MIB) {
    signal.throwIfAborted();
    hash.update(await disk.read(position, Math.min(MIB, length - position)));
    progress({ done: Math.min(position + MIB, length), total: length, unit: 'bytes', note: 'reading back' });
  }
  return hash.digest('hex');
}

/**
 * The digest of the order is over the bytes as fetched; `contentDigest` over the unpacked ones.
 * @throws disk_too_small before anything is fetched or written; image_* ; disk_none_matches, disk_several_match, disk_shared
 */
export const writeImage: DoAction<Image> = async (image, context) => {
  const disk = await findDiskToDestroy(context.machine, image.disk);
  if (disk.sizeBytes < image.unpackedBytes) throw new MetalflowError('disk_too_small', { serial: disk.serial, have: disk.sizeBytes, need: image.unpackedBytes });
  const contentDigest = await withDisk(disk, async (handle) => {
    const { contentDigest: written, seal } = await transfer(handle, image, context);
    await seal();
    return written;
  });
  // Through a fresh open: with its last user gone, Linux drops what it had cached of a block device, so this reads the device.
  await withDisk(disk, async (handle) => {
    const found = await readBack(handle, image.unpackedBytes, context);
    if (found === contentDigest) return;
    await blankHead(handle);
    throw new MetalflowError('image_readback_mismatch', { serial: disk.serial, expected: contentDigest, found });
  });
  return {
    message: `wrote ${image.unpackedBytes} bytes to disk ${disk.serial} and read them back`,
    evidence: { serial: disk.serial, sha256: image.sha256, contentDigest, bytesFetched: image.sizeBytes, bytesWritten: image.unpackedBytes, readBack: true },
  };
};
