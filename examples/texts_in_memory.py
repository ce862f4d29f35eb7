"""Find near-duplicates among texts that are already in memory, with ids of your own."""

import neardup

notes = {
    "monday": "The ferry to the island leaves at nine and is back at noon with the mail. "
    "Bicycles travel free of charge as long as there is room on the lower deck. "
    "Dogs are welcome when they are on a lead, and the kiosk sells tickets until ten minutes "
    "before the boat leaves the pier.",
    "friday": "The ferry to the island leaves at ten and is back at noon with the mail. "
    "Bicycles travel free of charge as long as there is room on the lower deck. "
    "Dogs are welcome when they are on a lead, and the kiosk sells tickets until ten minutes "
    "before the boat leaves the pier.",
    "recipe": "Peel the quinces, cut them into quarters and simmer them with sugar and a little "
    "lemon until they turn red. Strain the juice through a cloth without pressing.",
}

result = neardup.find(notes.values(), ids=notes)
for pair in result:
    print(f"{pair.left} and {pair.right}: {pair.distance} bits, Jaccard {pair.similarity:.2f}")
