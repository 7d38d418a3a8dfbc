/** The parts we use of packages that bring no types. */
declare module 'gpt' {
  interface PartitionEntry {
    /** Upper-case GUID text. */
    readonly type: string;
    readonly name: string;
    readonly firstLBA: bigint;
    readonly lastLBA: bigint;
  }
  class GPT {
    constructor(options?: { blockSize?: number });
    readonly partitions: PartitionEntry[];
    readonly tableOffset: bigint;
    readonly headerSize: number;
    readonly headerChecksum: number;
    readonly tableChecksum: number;
    readonly entries: number;
    readonly entrySize: number;
    parseHeader(buffer: Buffer, offset?: number): this;
    parseTable(buffer: Buffer, offset?: number, end?: number): this;
    checksumHeader(header: Buffer): number;
    checksumTable(table: Buffer): number;
  }
  export default GPT;
}
