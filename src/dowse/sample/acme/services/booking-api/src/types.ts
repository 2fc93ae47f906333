/** Words that every part of the booking API shares. */

export interface Address {
  readonly line1: string;
  readonly line2?: string;
  readonly postcode: string;
  readonly city: string;
  readonly country: string;
}

export interface Parcel {
  readonly weightGrams: number;
  readonly lengthMm: number;
  readonly widthMm: number;
  readonly heightMm: number;
  readonly fragile?: boolean;
}

export interface NewShipment {
  readonly quoteId: string;
  readonly parcel: Parcel;
  readonly from: Address;
  readonly to: Address;
  readonly recipientPhone?: string;
  readonly instructions?: string;
}

export interface Quote {
  readonly quoteId: string;
  readonly amountCents: number;
  readonly currency: string;
  readonly validUntil: Date;
}

export interface Shipment {
  readonly number: string;
  readonly status: "BOOKED" | "PLANNED" | "COLLECTED" | "IN_DEPOT" | "OUT_FOR_DELIVERY" | "DELIVERED" | "RETURNED";
  readonly amountCents: number;
  readonly labelUrl: string;
  readonly bookedAt: Date;
}

/** An answer the merchant can act on; the codes are listed in docs/error-codes.md. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
  ) {
    super(`${code} ${title}: ${detail}`);
  }

  body(requestId: string) {
    return { code: this.code, title: this.title, detail: this.detail, requestId };
  }
}
