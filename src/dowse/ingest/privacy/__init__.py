"""Privacy: masked secrets and pseudonyms for people; a document enters and a cleaned one leaves."""
