"""The query plan: a request enters; its validated fields, profile, query type, mentions and variants leave."""
