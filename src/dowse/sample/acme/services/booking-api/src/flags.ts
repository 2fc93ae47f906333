/** Feature flags from one line of configuration: `name=on`, `name=off` or `name=25%` (docs/adr/0007-feature-flags.md). */
import { createHash } from "node:crypto";

export class FeatureFlags {
  private constructor(private readonly shares: ReadonlyMap<string, number>) {}

  /** `green-tours=off,saturday-rates=on,eta-v2=10%`; an unknown value is an error, so a typo never ships quietly. */
  static parse(line: string): FeatureFlags {
    const shares = new Map<string, number>();
    for (const entry of line.split(",").filter(Boolean)) {
      const [name, value] = entry.split("=").map((part) => part.trim());
      shares.set(name, shareOf(name, value));
    }
    return new FeatureFlags(shares);
  }

  /** The same subject always gets the same side, in every service, because all hash alike. */
  isEnabled(name: string, subject: string): boolean {
    const share = this.shares.get(name) ?? 0;
    return bucketOf(name, subject) < share;
  }
}

function shareOf(name: string, value: string | undefined): number {
  if (value === "on") return 1;
  if (value === "off") return 0;
  const percent = /^(\d{1,3})%$/.exec(value ?? "");
  if (!percent || Number(percent[1]) > 100) {
    throw new Error(`feature flag ${name} has value ${value}; write on, off or a percentage such as 25%`);
  }
  return Number(percent[1]) / 100;
}

/** A number in [0, 1), from the first four bytes of a hash. */
export function bucketOf(name: string, subject: string): number {
  return createHash("sha256").update(`${name}:${subject}`).digest().readUInt32BE(0) / 2 ** 32;
}
